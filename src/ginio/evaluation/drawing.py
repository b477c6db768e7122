"""A figure in the plane for a page, as numbers, and for LaTeX."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ginio.evaluation.page import Figure
from ginio.evaluation.tables import for_latex

Point = tuple[str | float, float, float | None, float | None]
"""Place, value, and the lower and upper end of its interval."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with its title, what it shows, and which of its curves have no result."""

    name: str
    """Of its files."""
    title: str
    note: str
    figure: Figure
    """As plotly.js takes it."""
    missing: tuple[str, ...] = ()

    def csv(self) -> str:
        """Every point of every curve."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("curve", "x", "y", "low", "high"))
        for trace in self.figure["data"]:
            for x, y, low, high in points(trace):
                writer.writerow((trace["name"], x, y, low, high))
        return out.getvalue()

    def latex(self) -> str:
        """The figure for ``pgfplots``, in its own colours."""
        layout, traces = self.figure["layout"], self.figure["data"]
        options = [
            f"xlabel={{{for_latex(layout['xaxis']['title']['text'])}}}",
            f"ylabel={{{for_latex(layout['yaxis']['title']['text'])}}}",
            *(f"{axis}mode=log" for axis in "xy" if layout[f"{axis}axis"].get("type") == "log"),
            "legend pos=outer north east",
        ]
        if any(trace["type"] == "bar" for trace in traces):
            labels = dict.fromkeys(str(x) for trace in traces for x in trace["x"])
            coordinates = ",".join(f"{{{for_latex(label)}}}" for label in labels)
            options += ["ybar", "xtick=data", f"symbolic x coords={{{coordinates}}}"]
            options.append("x tick label style={rotate=45,anchor=east}")
        lines = [rf"\begin{{axis}}[{', '.join(options)}]"]
        for trace in traces:
            lines += list(_plot(trace))
        body = "\n".join([*lines, r"\end{axis}"])
        return f"% {self.title}\n\\begin{{tikzpicture}}\n{body}\n\\end{{tikzpicture}}\n"


def points(trace: Figure) -> Iterator[Point]:
    """The points of a curve with their intervals, if they have any."""
    bars: dict[str, Any] = trace.get("error_y", {})
    for i, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=True)):
        low, high = (y - bars["arrayminus"][i], y + bars["array"][i]) if bars else (None, None)
        yield x, y, low, high


def _plot(trace: Figure) -> Iterator[str]:
    mark = "only marks" if trace.get("mode") == "markers" else "mark=none"
    color = (trace.get("line") or trace["marker"])["color"].removeprefix("#")
    yield rf"\definecolor{{now}}{{HTML}}{{{color}}}"
    style = f"{mark}, color=now" if trace["type"] == "scatter" else "fill=now"
    pairs = " ".join(
        f"({{{for_latex(x)}}},{y})" if isinstance(x, str) else f"({x},{y})"
        for x, y, _, _ in points(trace)
    )
    yield rf"\addplot[{style}] coordinates {{{pairs}}};"
    yield rf"\addlegendentry{{{for_latex(trace['name'])}}}"
