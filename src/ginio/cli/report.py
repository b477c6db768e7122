"""`ginio report`: tables and figures of a study, from its results."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.markup import escape

from ginio.cli.console import CONSOLE
from ginio.evaluation.report import Report as Page
from ginio.evaluation.results import Results


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write every table and figure of a study from the results in its folder; trains nothing."""

    study: Annotated[Literal["nanobench"], tyro.conf.Positional]
    results: Annotated[Path, tyro.conf.Positional]
    """Folder of the study, as `ginio reproduce` leaves it."""

    def __call__(self) -> int:
        """Write the page, and each table and figure as CSV and LaTeX beside it."""
        page = write_report(self.results)
        CONSOLE.print(f"See it in a browser: {escape(str(page))}", soft_wrap=True)
        return 0


def write_report(folder: Path) -> Path:
    """Write page and tables into a study's folder; gives the page's place."""
    page = Page.of(Results.read(folder))
    target = folder / "report"
    target.mkdir(parents=True, exist_ok=True)
    for part in (*page.tables, *page.figures):
        (target / f"{part.name}.csv").write_text(part.csv(), encoding="utf-8")
        (target / f"{part.name}.tex").write_text(part.latex(), encoding="utf-8")
    place = target / "index.html"
    place.write_text(page.html(), encoding="utf-8")
    return place
