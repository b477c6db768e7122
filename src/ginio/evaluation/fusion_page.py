"""One filter-connected flight as one HTML file: path, errors and what the filter claims of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ginio.core.recording import Recording
from ginio.evaluation.fusion import Fused, world_errors
from ginio.evaluation.page import (
    AXES,
    BLUE,
    CAMERA,
    GREY,
    GRID,
    INK,
    LEGEND,
    SKY,
    VERMILION,
    Figure,
    curve,
    embedded_json,
    flat_layout,
    path_trace,
    plotly_js,
)
from ginio.evaluation.protocols import Score
from ginio.filters.belief import BIAS_ACC, BIAS_GYR
from ginio.filters.cloning import FilterConfig
from ginio.filters.gaussian import DOF, gate_threshold

SHOWN_REMOUNTS = 3
ROWS = (
    ("path error (ATE, SE(3)), m", "ate_se3"),
    ("velocity error, m/s", "velocity_rmse"),
    ("tilt error, °", "tilt_deg"),
    ("normalised innovation squared; 3 is honest", "nis"),
    ("normalised velocity error squared; 3 is honest", "nees"),
    ("measurements accepted", "accepted"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionStory:
    """What the page tells."""

    network: str
    filter: str
    recording: Recording
    fused: Fused
    R_ms: Float[Tensor, "run 3 3"]
    scores: Sequence[Score]


def render(story: FusionStory) -> str:
    """The whole page.

    Raises:
        PlotlyMissingError: plotly is not installed.
    """
    page = (files("ginio.evaluation") / "fusion.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        plotly=plotly_js(),
        figures=embedded_json(figures(story)),
        flight=escape(story.recording.name),
        network=escape(story.network),
        filter=escape({"inekf": "a left-invariant EKF", "scekf": "an SCEKF"}[story.filter]),
        remounts=str(len(story.R_ms) - 1),
        table=_table(story.scores),
    )


def figures(story: FusionStory) -> dict[str, Figure]:
    """Every figure by the place it goes to."""
    truth = story.recording.truth
    t, fused = story.fused.t, story.fused
    errors = world_errors(truth, fused, story.R_ms)
    sigma = _std(fused.covariance[0])
    return {
        "path": _path_figure(truth.p_w[torch.tensor(fused.samples)].double(), errors.position),
        "position": banded(t, errors.position[0], _std(errors.position_sigma[0]), "m"),
        "velocity": banded(t, errors.velocity[0], _std(errors.velocity_sigma[0]), "m/s"),
        "innovation": _innovation_figure(fused),
        "bias_acc": banded(t, fused.bias_acc_s[0], sigma[:, BIAS_ACC], "m/s²", name="bias"),
        "bias_gyr": banded(t, fused.bias_gyr_s[0], sigma[:, BIAS_GYR], "rad/s", name="bias"),
    }


def banded(
    t: Float64[Tensor, " time"],
    values: Float64[Tensor, "time 3"],
    sigma: Float64[Tensor, "time 3"],
    unit: str,
    *,
    name: str = "error",
) -> Figure:
    """Three curves over each other; errors in a band about zero, estimates in one about them."""
    traces, layout = list[Figure](), flat_layout()
    centre = torch.zeros_like(values) if name == "error" else values
    for number, axis in enumerate(AXES):
        suffix = str(number + 1) if number else ""
        place = {"yaxis": f"y{suffix}", "showlegend": number == 0, "hoverinfo": "x+y"}
        edge, band = place | {"legendgroup": "band"}, {"width": 0, "color": SKY}
        low, high = (centre + k * sigma for k in (-2, 2))
        traces += [
            curve("", t, low[:, number], band) | edge | {"showlegend": False},
            curve("±2σ that the filter claims", t, high[:, number], band)
            | edge
            | {"fill": "tonexty", "fillcolor": "rgba(86,180,233,0.35)"},
            curve(name, t, values[:, number], {"color": BLUE, "width": 1.5})
            | place
            | {"legendgroup": name},
        ]
        top = 1 - number * 0.345
        layout[f"yaxis{suffix}"] = {
            "title": {"text": f"{axis}, {unit}"},
            "domain": [top - 0.31, top],
        } | GRID
    layout["xaxis"] = {"title": {"text": "time, s"}, "anchor": f"y{len(AXES)}"} | GRID
    return {"data": traces, "layout": layout}


def _std(covariance: Float64[Tensor, "time n n"]) -> Float64[Tensor, "time n"]:
    # The first position is zero by definition, and rounding may say less.
    return covariance.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()


def _path_figure(
    p_true: Float64[Tensor, "time 3"], p_error: Float64[Tensor, "run time 3"]
) -> Figure:
    colors = (BLUE, VERMILION, SKY, GREY)
    traces = [path_trace("truth", p_true, {"color": INK, "width": 6})]
    for run, error in enumerate(p_error[: SHOWN_REMOUNTS + 1]):
        name = f"remounted, {run}" if run else "as recorded"
        traces.append(path_trace(name, p_true + error, {"width": 4, "color": colors[run]}))
    axes = {f"{a}axis": {"title": {"text": f"{a}, m"}, "nticks": 5} for a in AXES}
    layout: dict[str, Any] = flat_layout() | {
        "margin": {"l": 0, "r": 0, "t": 60, "b": 0},
        "legend": LEGEND,
        "scene": {"aspectmode": "data", "camera": CAMERA, **axes},
    }
    return {"data": traces, "layout": layout}


def _innovation_figure(fused: Fused) -> Figure:
    """Each measurement by how surprising it was."""
    t, nis, gate = fused.t, fused.nis[0].nan_to_num(), FilterConfig().gate_probability
    level = torch.ones_like(t)
    traces = [
        curve("normalised innovation squared", t, nis, {"color": BLUE, "width": 1.2}),
        curve("3: the mean, if all is honest", t, DOF * level, {"color": INK, "dash": "dot"}),
        curve(
            f"gate, {100 * gate:.0f} %",
            t,
            gate_threshold(gate) * level,
            {"color": VERMILION, "dash": "dash"},
        ),
    ]
    layout = flat_layout() | {
        "yaxis": {"title": {"text": "NIS"}, "rangemode": "tozero"} | GRID,
        "xaxis": {"title": {"text": "time, s"}} | GRID,
    }
    return {"data": traces, "layout": layout}


def _table(scores: Sequence[Score]) -> str:
    names = {"ID/ID": "as recorded", "ID/SO(3) remount": "mean over remounts"}
    head = "".join(f'<th scope="col">{names[s.test]}</th>' for s in scores)
    body = "".join(
        f'<tr><th scope="row">{title}</th>'
        + "".join(f"<td>{s.metrics[key]:.3f}</td>" for s in scores)
        + "</tr>"
        for title, key in ROWS
    )
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
