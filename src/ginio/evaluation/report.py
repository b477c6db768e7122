"""All tables and figures of a study as one HTML file that needs nothing else."""

from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

from ginio.evaluation.drawing import Drawing
from ginio.evaluation.page import embedded_json, plotly_js
from ginio.evaluation.results import Results
from ginio.evaluation.study_figures import all_figures
from ginio.evaluation.study_tables import all_tables
from ginio.evaluation.tables import Table

SMOKE = (
    "These figures come from a trial of the machinery, a few steps of training and two flights. "
    "They say nothing of any network."
)


@dataclass(frozen=True)
class Report:
    """Tables, figures, and what made them."""

    results: Results
    tables: tuple[Table, ...]
    figures: tuple[Drawing, ...]

    @classmethod
    def of(cls, results: Results) -> "Report":
        """The report of whatever results there are."""
        return cls(results, all_tables(results), all_figures(results))

    def html(self) -> str:
        """The whole page.

        Raises:
            PlotlyMissingError: plotly is not installed.
        """
        page = (files("ginio.evaluation") / "report.html").read_text(encoding="utf-8")
        return Template(page).substitute(
            plotly=plotly_js(),
            warning=f'<p class="warning">{SMOKE}</p>' if self.results.is_smoke else "",
            contents=self._contents(),
            tables="".join(table.html() for table in self.tables),
            places="".join(_place(drawing) for drawing in self.figures),
            figures=embedded_json({d.name: d.figure for d in self.figures}),
            provenance=_provenance(self.results),
        )

    def _contents(self) -> str:
        links = (
            "".join(f'<a href="#{escape(part.name)}">{escape(part.title)}</a>' for part in parts)
            for parts in (self.tables, self.figures)
        )
        return "".join(
            f"<div><b>{name}</b>{of_kind}</div>"
            for name, of_kind in zip(("Tables", "Figures"), links, strict=True)
        )


def _place(drawing: Drawing) -> str:
    missing = ""
    if drawing.missing:
        missing = f'<p class="missing">missing: {escape(", ".join(drawing.missing))}</p>'
    return (
        f'<section><h2 id="{escape(drawing.name)}">{escape(drawing.title)}</h2>'
        f'<div class="figure" data-figure="{escape(drawing.name)}"></div>'
        f'<p class="small">{escape(drawing.note)}</p>{missing}</section>'
    )


def _provenance(results: Results) -> str:
    """Commands, commits, data and versions, each different one once."""
    told: dict[str, list[str]] = {}
    for result in results.found:
        versions = ", ".join(f"{k} {v}" for k, v in result.made.get("versions", {}).items())
        split = f"{result.made.get('split', '?')}, {result.made.get('split_sha256', '?')}"
        for name, text in (
            ("command", str(result.made.get("command", "?"))),
            ("commit", str(result.made.get("commit", "?"))),
            ("versions", versions or "?"),
            ("split", split),
            ("truth", str(result.made.get("truth", "?"))),
        ):
            if text not in told.setdefault(name, []):
                told[name].append(text)
    runs = {(r.run, r.seed) for r in results.found}
    told["results"] = [f"{len(results.found)} files of {len(runs)} runs"]
    return "".join(
        f"<dt>{escape(name)}</dt><dd>{'<br>'.join(map(escape, texts))}</dd>"
        for name, texts in told.items()
    )
