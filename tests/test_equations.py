"""`docs/equations.md` and the docstrings of the code name each other."""

import ast
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
PAGE = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
CITATION = re.compile(r"\(Eq\.\s([\d,\s]+)\)")
ROWS = {
    int(number): re.findall(r"`(ginio\.[\w.]+)`", code)
    for number, code in re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE)
}
LISTED = [(number, name) for number, names in ROWS.items() for name in names]


def docstrings(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Every docstring below a node by dotted name; attributes have theirs on the next line."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        yield name, ast.get_docstring(node) or ""
    body: list[ast.AST] = getattr(node, "body", [])
    for child, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        match child, after:
            case ((ast.ClassDef() | ast.FunctionDef()), _):
                yield from docstrings(child, f"{name}.{child.name}")
            case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(
                value=ast.Constant(value=str(doc))
            ):
                yield f"{name}.{field}", doc
            case _:
                pass


def citations() -> Iterator[tuple[str, str, int]]:
    """(module, object, equation) for each number cited in a docstring."""
    for path in sorted(SRC.rglob("*.py")):
        module = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
        for name, doc in docstrings(ast.parse(path.read_text(encoding="utf-8")), module):
            for numbers in CITATION.findall(doc):
                for number in numbers.split(","):
                    yield module, name, int(number)


CITED = list(citations())


def test_every_equation_has_one_row() -> None:
    numbers = re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)
    assert [int(n) for n in numbers] == list(range(1, 42))
    assert all(ROWS[n] for n in range(1, 42))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(ginio\.[\w.]+)`", PAGE))))
def test_every_name_exists(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None


@pytest.mark.parametrize(("number", "name"), LISTED)
def test_a_listed_object_cites_its_equation(number: int, name: str) -> None:
    assert number in {n for _, cited, n in CITED if cited == name}


@pytest.mark.parametrize(("module", "name", "number"), CITED)
def test_a_cited_equation_is_listed_for_that_module(module: str, name: str, number: int) -> None:
    assert any(listed.startswith(f"{module}.") for listed in ROWS.get(number, [])), name


def test_citations_are_written_in_one_way() -> None:
    """A number outside the parenthesis, or outside a docstring, would be seen by no test."""
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(SRC.rglob("*.py")))
    found = [n for numbers in CITATION.findall(source) for n in numbers.split(",")]
    assert len(found) == len(CITED)
    assert len(re.findall(r"\bEq\.|\bEquation\b|\beq\.", source)) == len(CITATION.findall(source))
