"""`ginio report`: tables and figures of a study, from its results."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.markup import escape

from ginio.cli.console import CONSOLE
from ginio.evaluation.report import Report as Page
from ginio.evaluation.results import Results

PACKED = "results.jsonl.xz"
"""All results in one file, from which the report can be written again."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write every table and figure of a study from the results in its folder; trains nothing."""

    study: Annotated[Literal["nanobench"], tyro.conf.Positional]
    results: Annotated[Path, tyro.conf.Positional]
    """Folder of the study, as `ginio reproduce` leaves it, or its packed results."""
    out: Path | None = None
    """Where to write; beside the results by default."""

    def __call__(self) -> int:
        """Write the page, and each table and figure as CSV and LaTeX beside it."""
        page = write_report(self.results, self.out)
        CONSOLE.print(f"See it in a browser: {escape(str(page))}", soft_wrap=True)
        return 0


def write_report(place: Path, out: Path | None = None) -> Path:
    """Write page and tables of the results of a study; gives the page's place."""
    results = Results.read(place)
    page = Page.of(results)
    target = out or (place.parent if place.is_file() else place) / "report"
    target.mkdir(parents=True, exist_ok=True)
    if not place.is_file():
        results.pack(target / PACKED)
    for part in (*page.tables, *page.figures):
        (target / f"{part.name}.csv").write_text(part.csv(), encoding="utf-8")
        (target / f"{part.name}.tex").write_text(part.latex(), encoding="utf-8")
    path = target / "index.html"
    path.write_text(page.html(), encoding="utf-8")
    return path
