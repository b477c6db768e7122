"""House rules that no linter knows."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "ginio"
MODULES = sorted(SRC.rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EMPTY_NAMES = {"utils", "helpers", "common", "misc", "manager"}
# Spelled in parts, so that this file does not hold what it forbids.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("download", "pytorch", "org"),
        ("anaconda", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
    )
]
MACHINE_PATHS = ["/" + "work/", "/" + "home/", ".." + "/shared"]

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
each_page = pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@each_module
def test_a_module_is_short_and_says_what_it_is(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert ast.get_docstring(tree(path))


@each_module
def test_a_module_is_named_after_what_is_in_it(path: Path) -> None:
    assert EMPTY_NAMES.isdisjoint(path.relative_to(SRC).with_suffix("").parts)


@each_module
def test_annotations_stay_checkable(path: Path) -> None:
    """Shapes are checked at run time, which postponed annotations would prevent."""
    sources = {n.module for n in ast.walk(tree(path)) if isinstance(n, ast.ImportFrom)}
    assert "__future__" not in sources


@each_module
def test_capital_f_is_left_to_the_filters(path: Path) -> None:
    aliases = [n for n in ast.walk(tree(path)) if isinstance(n, ast.alias)]
    assert "F" not in {a.asname for a in aliases}


@each_module
def test_nothing_prints(path: Path) -> None:
    assert "print" not in {n.id for n in ast.walk(tree(path)) if isinstance(n, ast.Name)}


@each_page
def test_make_targets_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    commands = re.findall(r"(?:^|`)make ([a-z -]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert {target for command in commands for target in command.split()} <= targets


@each_page
def test_relative_links_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose)
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert [link for link in local if not (path.parent / link).exists()] == []


def repository_texts() -> dict[str, str]:
    """Every text file that is, or is about to be, in the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    texts: dict[str, str] = {}
    for name in filter(None, listed.split("\0")):
        try:
            texts[name] = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue
    return texts


def test_no_file_names_a_registry() -> None:
    found = {
        name: [h for h in REGISTRIES if h in text] for name, text in repository_texts().items()
    }
    assert {name: hosts for name, hosts in found.items() if hosts} == {}


def test_no_file_names_a_machine() -> None:
    """A test may look for recordings beside the repository, if it skips without them."""
    found = {
        name: [p for p in MACHINE_PATHS if p in text]
        for name, text in repository_texts().items()
        if not (name.startswith("tests/") and "skip" in text)
    }
    assert {name: paths for name, paths in found.items() if paths} == {}
