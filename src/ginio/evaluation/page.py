"""The remounted flight as one HTML file that needs nothing else: no network, no server, no font."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from ginio.evaluation.remount import Row, Track

# Okabe and Ito's colours, which most colour-blind people tell apart; lines differ in style too.
INK, GREY, BLUE, SKY, VERMILION = "#222222", "#767676", "#0072B2", "#56B4E9", "#D55E00"
STYLES = (
    {"color": BLUE, "dash": "solid"},
    {"color": VERMILION, "dash": "dash"},
)
FONT = {"family": "system-ui, sans-serif", "size": 13, "color": INK}
AXES = "xyz"
CAMERA = {"eye": {"x": 1.25, "y": -1.35, "z": 0.75}, "center": {"x": 0, "y": 0, "z": -0.12}}
ELLIPSOIDS = 10
# Part of the flight's extent that the median ellipsoid's longest semi-axis is drawn with.
ELLIPSOID_SIZE = 0.08
RINGS, SPOKES = 13, 20
MEAN_WITHIN_2_STD = 0.9545
COLUMNS = (
    ("path error, m", "ate_se3", 1.0),
    ("velocity error, m/s", "velocity_rmse", 1.0),
    ("inside 95 % ellipsoid", "cov95", 100.0),
)
Figure = dict[str, Any]


class PlotlyMissingError(RuntimeError):
    """The page needs plotly, which is optional."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the page tells; the first label is the network whose uncertainty is shown."""

    flight: str
    origin: str
    exposure: str
    """Which networks saw the flight before, in words."""
    reading: str
    networks: Mapping[str, str]
    """What each network is, as the rest of a sentence that begins with its label."""
    rows: Sequence[Row]
    provenance: Sequence[tuple[str, str]]

    @property
    def labels(self) -> list[str]:
        """The networks."""
        return list(self.rows[0].tracks)

    @property
    def facts(self) -> Mapping[str, str]:
        """The short texts of the page, by their places in it."""
        return {
            "flight": self.flight,
            "origin": self.origin,
            "exposure": self.exposure,
            "reading": self.reading,
            "network": self.labels[0],
        }


def render(story: Story) -> str:
    """The whole page.

    Raises:
        PlotlyMissingError: plotly is not installed.
    """
    page = (files("ginio.evaluation") / "page.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        plotly=plotly_js(),
        **{name: escape(text) for name, text in story.facts.items()},
        figures=embedded_json([figures(row, story.labels[0]) for row in story.rows]),
        networks=_networks(story),
        table=_table(story),
        tabs=_tabs(story.rows),
        provenance="".join(
            f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in story.provenance
        ),
    )


def plotly_js() -> str:
    """The library that draws, to be written into a page.

    Raises:
        PlotlyMissingError: plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 - optional
    except ImportError:
        raise PlotlyMissingError("the page needs plotly: pip install 'ginio[plot]'") from None
    return get_plotlyjs()


def embedded_json(document: Any) -> str:
    """JSON that can stand between script tags."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _networks(story: Story) -> str:
    return " ".join(
        f'<span class="name">{_key(number)}<b>{escape(label)}</b></span> '
        f"{escape(story.networks[label])}."
        for number, label in enumerate(story.labels)
    )


def _key(number: int) -> str:
    """A short piece of the line that stands for a network in every figure."""
    style = STYLES[number % len(STYLES)]
    line = {"solid": "solid", "dash": "dashed"}[style["dash"]]
    return f'<i class="key" style="border-top:3px {line} {style["color"]}"></i>'


def _table(story: Story) -> str:
    head = "".join(
        f'<th colspan="{len(COLUMNS)}" scope="colgroup">{_key(number)}{escape(label)}</th>'
        for number, label in enumerate(story.labels)
    )
    names = "".join(f'<th scope="col">{name}</th>' for name, _, _ in COLUMNS) * len(story.labels)
    longest = max(t.errors["ate_se3"] for row in story.rows for t in row.tracks.values())
    body = "".join(_table_row(row, longest) for row in story.rows)
    return (
        f'<table><thead><tr><th rowspan="2" scope="col">mounting</th>{head}'
        f'<th scope="col">standing still</th></tr><tr>{names}'
        f'<th scope="col">{COLUMNS[0][0]}</th></tr></thead><tbody>{body}</tbody></table>'
    )


def _table_row(row: Row, longest: float) -> str:
    cells = [f'<th scope="row">{escape(row.mounting.name)}</th>']
    for number, of_network in enumerate(row.tracks.values()):
        for _, metric, factor in COLUMNS:
            value = of_network.errors[metric]
            text = f"{100 * value:.0f} %" if factor == 100 else f"{value:.3f}"
            bar = _bar(value / longest, number) if metric == "ate_se3" else ""
            cells.append(f"<td>{text}{bar}</td>")
    cells.append(f"<td>{row.standing_still:.3f}</td>")
    return f"<tr data-row>{''.join(cells)}</tr>"


def _bar(part: float, number: int) -> str:
    color = STYLES[number % len(STYLES)]["color"]
    return f'<i style="width:{100 * part:.1f}%;background:{color}"></i>'


def _tabs(rows: Sequence[Row]) -> str:
    return "".join(
        f'<button type="button" data-mounting title="{escape(row.mounting.description)}">'
        f"{escape(row.mounting.name)}</button>"
        for row in rows
    )


def figures(row: Row, label: str) -> dict[str, Any]:
    """Everything the page draws of one mounting, as plotly.js takes it."""
    shown = row.tracks[label]
    return {
        "note": f"{row.mounting.name}: {row.mounting.description}.",
        "ellipsoids": f"Ellipsoids: two standard deviations of the velocity, as {label} claims "
        f"them; {ellipsoid_scale(shown):g} m are drawn for 1 m/s.",
        "honesty": f"{100 * shown.within_2_std():.0f} % of these errors lie inside the band; "
        f"{100 * MEAN_WITHIN_2_STD:.0f} % would, if the band were right.",
        "path": path_figure(row, label),
        "error": error_figure(row),
        "uncertainty": uncertainty_figure(shown),
        "views": {
            "all": _ranges([t.odometry.p_w for t in row.tracks.values()] + [shown.p_true_w]),
            "truth": _ranges([shown.p_true_w]),
        },
    }


def path_figure(row: Row, label: str) -> Figure:
    """The paths in the world, which can be turned, with ellipsoids of one network."""
    shown = row.tracks[label]
    traces = [path_trace("truth", shown.p_true_w, {"color": INK, "width": 6})]
    for (name, of_network), style in zip(row.tracks.items(), STYLES, strict=False):
        # A dashed line in space falls to pieces where it runs towards the eye.
        line = {"width": 4, "color": style["color"]}
        traces.append(path_trace(name, of_network.odometry.p_w, line))
    traces.append(_start(shown.p_true_w))
    traces.append(ellipsoids(shown, ellipsoid_scale(shown)))
    axis = {
        "backgroundcolor": "#f7f7f7",
        "gridcolor": "#dddddd",
        "showbackground": True,
        "showspikes": False,
        "nticks": 5,
    }
    layout = {
        "font": FONT,
        "margin": {"l": 0, "r": 0, "t": 60, "b": 0},
        "legend": LEGEND | {"itemsizing": "constant"},
        "uirevision": "flight",
        "scene": {
            "aspectmode": "manual",
            "camera": CAMERA,
            **{f"{a}axis": {"title": {"text": f"{a}, m"}, **axis} for a in AXES},
        },
    }
    return {"data": traces, "layout": layout}


def path_trace(name: str, p_w: Float64[Tensor, "time 3"], line: Mapping[str, Any]) -> Figure:
    """A path in space."""
    hover = {"hovertemplate": "%{x:.2f}, %{y:.2f}, %{z:.2f} m"}
    trace = {"type": "scatter3d", "mode": "lines", "name": escape(name), "line": dict(line)}
    return trace | hover | _columns(AXES, p_w)


def _start(p_w: Float64[Tensor, "time 3"]) -> Figure:
    marker = {"color": INK, "size": 5, "symbol": "circle"}
    trace = {"type": "scatter3d", "mode": "markers", "name": "start", "marker": marker}
    return trace | {"hoverinfo": "name"} | _columns(AXES, p_w[:1])


def ellipsoids(shown: Track, scale: float) -> Figure:
    """Where Σ puts the velocity with two standard deviations, along the path, as one mesh.

    Velocities are drawn as lengths, ``scale`` metres for one metre a second.
    """
    chosen, semi_axes = _drawn(shown)
    axes_w = shown.odometry.measurement.covariance.axes[chosen].double()
    root_w = axes_w * (scale * semi_axes).unsqueeze(-2)
    sphere, triangles = unit_sphere()
    points_w = shown.odometry.p_w[chosen].unsqueeze(1) + sphere @ root_w.mT
    offset = len(sphere) * torch.arange(len(chosen)).view(-1, 1, 1)
    mesh = {
        "type": "mesh3d",
        "name": "2σ of velocity",
        "showlegend": True,
        "hoverinfo": "skip",
        "color": SKY,
        "opacity": 0.45,
    }
    corners = (triangles + offset).reshape(-1, 3).unbind(-1)
    indices = {name: corner.tolist() for name, corner in zip("ijk", corners, strict=True)}
    return mesh | _columns(AXES, points_w.reshape(-1, 3)) | indices


def ellipsoid_scale(shown: Track) -> float:
    """Metres to draw for one metre a second, so that ellipsoids fit the flight."""
    extent = float((shown.p_true_w.amax(0) - shown.p_true_w.amin(0)).max())
    _, semi_axes = _drawn(shown)
    return nice(ELLIPSOID_SIZE * extent / float(semi_axes.amax(-1).median()))


def _drawn(shown: Track) -> tuple[Int64[Tensor, " chosen"], Float64[Tensor, "chosen 3"]]:
    """Instants whose ellipsoids are drawn, and two standard deviations along their axes."""
    odometry = shown.odometry
    chosen = torch.linspace(0, len(odometry.t) - 1, ELLIPSOIDS + 2)[1:-1].round().long()
    return chosen, 2 * odometry.measurement.covariance.std[chosen].double()


def unit_sphere() -> tuple[Float64[Tensor, "point 3"], Tensor]:
    """Points of a sphere on rings between its poles, and triangles of their numbers."""
    polar = torch.linspace(0, math.pi, RINGS, dtype=torch.float64).unsqueeze(1)
    around = 2 * math.pi * torch.arange(SPOKES, dtype=torch.float64) / SPOKES
    flat = polar.sin()
    points = torch.stack(
        (flat * around.cos(), flat * around.sin(), polar.cos().expand(RINGS, SPOKES)), dim=-1
    )
    number = torch.arange(RINGS * SPOKES).view(RINGS, SPOKES)
    here, beside = number[:-1], number[:-1].roll(-1, 1)
    below, across = number[1:], number[1:].roll(-1, 1)
    triangles = [torch.stack(c, -1) for c in ((here, beside, below), (beside, across, below))]
    return points.reshape(-1, 3), torch.cat(triangles).reshape(-1, 3)


def nice(value: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten, from below."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value)


def error_figure(row: Row) -> Figure:
    """Distance from the truth over time, beside that of standing still."""
    traces: list[Figure] = []
    for (name, of_network), style in zip(row.tracks.items(), STYLES, strict=False):
        t, error = of_network.odometry.t, of_network.position_error()
        traces.append(curve(name, t, error, {"width": 2.5, **style}))
    any_track = next(iter(row.tracks.values()))
    still = (any_track.p_true_w - any_track.p_true_w[0]).norm(dim=-1)
    line = {"color": GREY, "width": 1.5, "dash": "dot"}
    traces.append(curve("standing still", any_track.odometry.t, still, line))
    layout = flat_layout() | {
        "yaxis": {"title": {"text": "distance, m"}, "rangemode": "tozero"} | GRID,
        "xaxis": {"title": {"text": "time, s"}} | GRID,
        "hovermode": "x unified",
    }
    return {"data": traces, "layout": layout}


def uncertainty_figure(shown: Track) -> Figure:
    """Velocity error along each axis of the world, with the two standard deviations of Σ."""
    t, traces, layout = shown.odometry.t, list[Figure](), flat_layout()
    errors, bands = shown.velocity_error_w().double(), 2 * shown.velocity_std_w().double()
    limit = 1.1 * float(torch.maximum(errors.abs().max(), bands.max()))
    for number, (axis, error, band) in enumerate(zip(AXES, errors.mT, bands.mT, strict=True)):
        suffix = str(number + 1) if number else ""
        place = {"yaxis": f"y{suffix}", "showlegend": number == 0, "hoverinfo": "x+y"}
        edge = place | {"legendgroup": "band"}
        low = curve("", t, -band, {"width": 0, "color": SKY}) | edge | {"showlegend": False}
        high = curve("±2σ that it claims", t, band, {"width": 0, "color": SKY}) | edge
        traces += [low, high | {"fill": "tonexty", "fillcolor": "rgba(86,180,233,0.35)"}]
        line = {"color": BLUE, "width": 1.5}
        traces.append(curve("velocity error", t, error, line) | place | {"legendgroup": "error"})
        top = 1 - number * 0.345
        layout[f"yaxis{suffix}"] = {
            "title": {"text": f"{axis}, m/s"},
            "domain": [top - 0.31, top],
            "range": [-limit, limit],
        } | GRID
    layout["xaxis"] = {"title": {"text": "time, s"}, "anchor": f"y{len(AXES)}"} | GRID
    return {"data": traces, "layout": layout}


LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
GRID = {"gridcolor": "#e6e6e6", "zerolinecolor": "#bbbbbb", "automargin": True}


def flat_layout() -> dict[str, Any]:
    """What all figures in the plane have in common."""
    return {
        "font": FONT,
        "margin": {"l": 60, "r": 10, "t": 30, "b": 45},
        "legend": LEGEND,
        "uirevision": "flight",
        "plot_bgcolor": "white",
    }


def curve(name: str, t: Tensor, y: Tensor, line: Mapping[str, Any]) -> Figure:
    """A curve over time."""
    trace = {"type": "scatter", "mode": "lines", "name": escape(name), "line": dict(line)}
    return trace | _columns("xy", torch.stack((t.double(), y.double()), -1))


def _ranges(paths_w: Sequence[Float64[Tensor, "time 3"]]) -> list[list[float]]:
    """Limits of three axes that hold some paths, none much shorter than the longest."""
    points = torch.cat(list(paths_w))
    low, high = points.amin(0), points.amax(0)
    half = 0.5 * (high - low)
    half = torch.maximum(half, 0.3 * half.max()) + 0.08 * half.max()
    centre = 0.5 * (high + low)
    return torch.stack((centre - half, centre + half), -1).tolist()


def _columns(names: str, values: Float64[Tensor, "row column"]) -> dict[str, list[float]]:
    """Tenths of a millimetre are fine enough to draw, and keep the file small."""
    columns = zip(names, values.unbind(-1), strict=True)
    return {name: [round(value, 4) for value in column.tolist()] for name, column in columns}
