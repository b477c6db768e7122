"""The NanoBench figures of the paper from the results of a study, as plotly.js takes them."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ginio.evaluation import paper
from ginio.evaluation.drawing import Drawing
from ginio.evaluation.frame_errors import ANGLES_DEG, COURSES, KINDS, Course, ErrorKind, FrameError
from ginio.evaluation.page import BLUE, GREY, GRID, INK, SKY, VERMILION, Figure, flat_layout
from ginio.evaluation.paper import Row
from ginio.evaluation.protocols import STANDING_STILL, STRAPDOWN, TESTS
from ginio.evaluation.results import Results

# The rest of Okabe and Ito's colours.
GREEN, ORANGE, PURPLE, YELLOW = "#009E73", "#E69F00", "#CC79A7", "#B8A400"
COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, YELLOW, INK)
DASHES = ("solid", "dash", "dot")
BESIDE = {"legend": {"orientation": "v", "x": 1.02, "y": 1}}
"""Where the names of many curves stand."""


def all_figures(results: Results) -> tuple[Drawing, ...]:
    """Every figure, in the paper's order."""
    return (
        velocity_figure(results),
        coverage_figure(results),
        likelihood_figure(results),
        *(mismatch_figure(results, kind, course) for kind in KINDS for course in COURSES),
        cdf_figure(results),
    )


def velocity_figure(results: Results) -> Drawing:
    """Velocity errors as recorded and under both rotation tests, as bars."""
    rows = (*paper.MAIN, Row(STANDING_STILL, "standing still"))
    traces: list[Figure] = []
    for test, color in zip(TESTS, (GREY, VERMILION, BLUE), strict=True):
        found = [(r, results.summary(r.run, "rotations", test, "velocity_rmse")) for r in rows]
        known = [(row, summary.over_recordings) for row, summary in found if summary is not None]
        traces.append(
            {
                "type": "bar",
                "name": test,
                "marker": {"color": color},
                "x": [row.label for row, _ in known],
                "y": [over.mean for _, over in known],
                "error_y": _whiskers([(o.mean, o.low, o.high) for _, o in known]),
            }
        )
    layout = _layout("", "velocity RMSE, m/s") | {"barmode": "group"}
    return Drawing(
        "velocity-figure",
        "Velocity under rotations",
        "Mean over recordings with its bootstrap 95 % interval.",
        {"data": traces, "layout": layout},
        _missing(results, rows, "rotations"),
    )


def coverage_figure(results: Results) -> Drawing:
    """How many errors lie inside ellipsoids that should hold a part of them."""
    ideal = _curve("ideal", [0.0, 1.0], [0.0, 1.0], {"color": GREY, "dash": "dot", "width": 1.5})
    traces = [ideal]
    for number, row in enumerate(paper.COVARIANCE):
        found = results.calibrations(row.run)
        if found:
            mean = torch.tensor([c.coverage for c in found]).mean(0).tolist()
            traces.append(_curve(row.label, found[0].levels, mean, _style(number)))
    return Drawing(
        "coverage",
        "Coverage",
        "Part of the velocity errors inside the ellipsoid that should hold the part below; under "
        "the dotted line Σ is too small, above it too large. Mean over seeds.",
        {"data": traces, "layout": _layout("expected coverage", "observed coverage")},
        _missing(results, paper.COVARIANCE, "calibration"),
    )


def likelihood_figure(results: Results) -> Drawing:
    """The two parts of the likelihood, window by window."""
    traces: list[Figure] = []
    for number, row in enumerate(paper.COVARIANCE):
        found = results.calibrations(row.run)
        if not found:
            continue
        marker = {"color": COLORS[number % len(COLORS)], "size": 4, "opacity": 0.6}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": row.label,
                "marker": marker,
                "visible": True if "NLL" in row.label else "legendonly",
                "x": _short(found[0].log_det),
                "y": _short([2 * value for value in found[0].mahalanobis]),
            }
        )
    layout = _layout("½ log det Σ", "NEES")
    layout["yaxis"] |= {"type": "log"}
    layout["shapes"] = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": 3,
            "y1": 3,
            "line": {"color": GREY, "dash": "dash", "width": 1.5},
        }
    ]
    return Drawing(
        "likelihood",
        "Likelihood in two parts",
        "One point a window; the dashed line is the NEES of an honest Σ, 3. Click a name to show "
        "or hide it.",
        {"data": traces, "layout": layout},
        _missing(results, paper.COVARIANCE, "calibration"),
    )


def mismatch_figure(results: Results, kind: ErrorKind, course: Course) -> Drawing:
    """Path errors against the angle by which a frame is wrong, with intervals."""
    rows = paper.GRAVITY_ERROR if kind == "gravity" else paper.RELATIVE_ERROR
    traces: list[Figure] = []
    for number, row in enumerate(rows):
        points = _sweep(results, row, kind, course)
        if len(points) < 2:
            continue
        angles, values = zip(*points, strict=True)
        name = f"{row.label}, {row.seen}"
        curve = _curve(name, angles, [mean for mean, _, _ in values], _style(number))
        traces.append(curve | {"mode": "lines+markers", "error_y": _whiskers(values)})
    still = results.summary(STANDING_STILL, "rotations", "ID/ID", "ate_se3")
    if still is not None:
        line = {"color": GREY, "dash": "dot", "width": 1.5}
        traces.append(_curve("standing still", (0.0, ANGLES_DEG[-1]), [still.mean] * 2, line))
    frame = "Gravity-frame" if kind == "gravity" else "LFA relative-frame"
    return Drawing(
        f"mismatch-{kind}-{course}-figure",
        f"{frame} error, {course}",
        "Mean ATE over recordings with its bootstrap 95 % interval.",
        {"data": traces, "layout": _layout("error of the frame, degrees", "ATE, m") | BESIDE},
        _missing(results, rows, "frame errors"),
    )


def cdf_figure(results: Results) -> Drawing:
    """Which part of the recordings has an error below each value."""
    rows = (*paper.MAIN, Row(STANDING_STILL, "standing still"), Row(STRAPDOWN, "strapdown"))
    traces: list[Figure] = []
    for number, row in enumerate(rows):
        values = results.values(row.run, "rotations", "ID/ID", "ate_se3")
        if values is None:
            continue
        errors = values.sort().values.tolist()
        parts = [0.0, *((i + 1) / len(errors) for i in range(len(errors)))]
        is_trivial = row.run in {STANDING_STILL, STRAPDOWN}
        line = {"color": GREY, "dash": "dot"} if is_trivial else _style(number)
        curve = _curve(row.label, [errors[0], *errors], parts, {**line, "shape": "hv"})
        traces.append(curve)
    layout = _layout("ATE, m", "part of the recordings") | BESIDE
    layout["xaxis"] |= {"type": "log"}
    return Drawing(
        "cdf",
        "Distribution of path errors",
        "Recordings of the standard test split as they are; mean over seeds for each recording.",
        {"data": traces, "layout": layout},
        _missing(results, rows, "rotations"),
    )


def _sweep(
    results: Results, row: Row, kind: ErrorKind, course: Course
) -> list[tuple[float, tuple[float, float, float]]]:
    """Angles with the mean and the interval there; the nominal run stands at zero."""
    asked = [(0.0, results.summary(row.run, "rotations", "ID/ID", "ate_se3"))]
    for angle in ANGLES_DEG:
        name = FrameError(kind, course, angle).name
        asked.append((angle, results.summary(row.run, "frame errors", name, "ate_se3")))
    return [
        (angle, (found.mean, found.over_recordings.low, found.over_recordings.high))
        for angle, found in asked
        if found is not None
    ]


def _missing(results: Results, rows: Sequence[Row], protocol: str) -> tuple[str, ...]:
    return tuple(f"{r.label} ({r.run})" for r in rows if not results.of(r.run, protocol))


def _style(number: int) -> dict[str, Any]:
    return {
        "color": COLORS[number % len(COLORS)],
        "dash": DASHES[(number // len(COLORS)) % len(DASHES)],
        "width": 2,
    }


def _curve(name: str, x: Sequence[float], y: Sequence[float], line: Mapping[str, Any]) -> Figure:
    trace = {"type": "scatter", "mode": "lines", "name": name, "line": dict(line)}
    return trace | {"x": _short(x), "y": _short(y)}


def _whiskers(values: Sequence[tuple[float, float, float]]) -> dict[str, Any]:
    """Error bars from means, lower and upper ends."""
    return {
        "type": "data",
        "symmetric": False,
        "thickness": 1,
        "width": 3,
        "array": _short([high - mean for mean, _, high in values]),
        "arrayminus": _short([mean - low for mean, low, _ in values]),
    }


def _layout(x: str, y: str) -> dict[str, Any]:
    return flat_layout() | {
        "xaxis": {"title": {"text": x}} | GRID,
        "yaxis": {"title": {"text": y}} | GRID,
        "hovermode": "closest",
    }


def _short(values: Sequence[float]) -> list[float]:
    """Five digits are enough to draw."""
    return [float(f"{value:.5g}") for value in values]
