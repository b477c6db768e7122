"""Tables of numbers with their uncertainty, as HTML, CSV and LaTeX."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ginio.evaluation.results import Summary

MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Number:
    """A value with what is known of its spread."""

    value: float
    low: float | None = None
    high: float | None = None
    """The bootstrap 95 % interval of a mean over recordings."""
    std: float | None = None
    """From seed to seed."""
    digits: int = 3
    """Behind the point, or significant ones if it is small."""

    @classmethod
    def of(cls, summary: Summary | None, digits: int = 3) -> "Number | None":
        """A summary as a number; None if it is missing."""
        if summary is None:
            return None
        over = summary.over_recordings
        return cls(over.mean, over.low, over.high, summary.std, digits)

    def text(self, value: float) -> str:
        """A value with this number's digits."""
        if value and abs(value) < 10**-self.digits:
            return f"{value:.2e}"
        return f"{value:.{self.digits}f}"

    def __str__(self) -> str:
        spread = "" if self.std is None else f" ± {self.text(self.std)}"
        if self.low is None or self.high is None:
            return f"{self.text(self.value)}{spread}"
        return f"{self.text(self.value)}{spread} [{self.text(self.low)}, {self.text(self.high)}]"


@dataclass(frozen=True, slots=True)
class Paper:
    """A number that the paper prints."""

    value: float
    digits: int = 3

    def __str__(self) -> str:
        return str(Number(self.value, digits=self.digits))


Cell = str | Number | Paper | None
"""None is a figure that was not found."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under the names of their columns."""

    name: str
    """Of its files."""
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.name}: expected {len(self.columns)} cells a row; found {len(row)}"
                )

    def csv(self) -> str:
        """Comma-separated values: of each number also its interval and its spread over seeds."""
        has_spread = [
            any(isinstance(row[i], Number) for row in self.rows) for i in range(len(self.columns))
        ]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        head: list[str] = []
        for name, wide in zip(self.columns, has_spread, strict=True):
            head += [name, f"{name} low", f"{name} high", f"{name} std"] if wide else [name]
        writer.writerow(head)
        for row in self.rows:
            cells: list[str] = []
            for cell, wide in zip(row, has_spread, strict=True):
                cells += _spread(cell) if wide else [_plain(cell)]
            writer.writerow(cells)
        return out.getvalue()

    def latex(self) -> str:
        """A tabular between rules, for ``booktabs``."""
        lines = [
            f"% {self.title}",
            rf"\begin{{tabular}}{{l{'c' * (len(self.columns) - 1)}}}",
            r"\toprule",
            " & ".join(map(for_latex, self.columns)) + r" \\",
            r"\midrule",
            *(
                " & ".join(for_latex(_shown(cell, "--")) for cell in row) + r" \\"
                for row in self.rows
            ),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """The table with its title and its note."""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        body = "".join(f"<tr>{_html_row(row)}</tr>" for row in self.rows)
        return (
            f'<section><h2 id="{escape(self.name)}">{escape(self.title)}</h2>'
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
            f'<tbody>{body}</tbody></table></div><p class="small">{escape(self.note)}</p></section>'
        )


def _shown(cell: Cell, missing: str) -> str:
    return missing if cell is None else str(cell)


def _plain(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case Number() | Paper():
            return repr(cell.value)
        case _:
            return cell


def _spread(cell: Cell) -> list[str]:
    if not isinstance(cell, Number):
        return [_plain(cell), "", "", ""]
    more = (cell.low, cell.high, cell.std)
    return [repr(cell.value), *("" if value is None else repr(value) for value in more)]


def _html_row(row: Sequence[Cell]) -> str:
    first, *others = row
    cells = [f'<th scope="row">{escape(_shown(first, MISSING))}</th>']
    for cell in others:
        match cell:
            case None:
                cells.append(f'<td class="missing">{MISSING}</td>')
            case Paper():
                cells.append(f'<td class="paper">{cell}</td>')
            case Number():
                main, _, more = str(cell).partition(" [")
                interval = f"<small>[{more}</small>" if more else ""
                cells.append(f"<td>{main}{interval}</td>")
            case _:
                cells.append(f"<td>{escape(cell)}</td>")
    return "".join(cells)


_LATEX = str.maketrans(
    {
        "%": r"\%",
        "_": r"\_",
        "&": r"\&",
        "#": r"\#",
        "±": r"$\pm$",
        "°": r"$^\circ$",
        "Σ": r"$\Sigma$",
        "μ": r"$\mu$",
        "×": r"$\times$",
        "→": r"$\to$",
        "–": "--",
        "½": r"$\frac12$",
    }
)


def for_latex(text: str) -> str:
    """Text as LaTeX sets it."""
    return text.translate(_LATEX)
