"""Every NanoBench table of the paper from the results of a study, the paper's number beside ours.

A figure without a result is missing. Standing still and strapdown stand in every table of paths.
"""

from collections.abc import Iterator

import torch

from ginio.evaluation import paper
from ginio.evaluation.frame_errors import ANGLES_DEG, COURSES, KINDS, Course, ErrorKind, FrameError
from ginio.evaluation.paper import Row
from ginio.evaluation.protocols import STANDING_STILL, STRAPDOWN, TESTS, RotationTest
from ginio.evaluation.remounting import CONDITIONS, NOMINAL, UNSEEN
from ginio.evaluation.results import Results
from ginio.evaluation.statistics import bootstrap
from ginio.evaluation.tables import Cell, Number, Paper, Table

ID, VECTORS, REMOUNTED = TESTS
BASELINES = (Row(STANDING_STILL, "standing still"), Row(STRAPDOWN, "strapdown"))
SPREAD = (
    "Mean over recordings with its bootstrap 95 % interval; ± is the standard deviation from seed "
    "to seed, where there are several."
)


def all_tables(results: Results) -> tuple[Table, ...]:
    """Every table, in the paper's order."""
    return (
        main_table(results),
        main_table(results, "-cross"),
        velocity_table(results),
        augmentation_table(results),
        capacity_table(results),
        covariance_table(results),
        *(mismatch_table(results, kind, course) for kind in KINDS for course in COURSES),
        mismatch_covariance_table(results),
        remount_table(results),
        comparison_table(results),
    )


def main_table(results: Results, suffix: str = "") -> Table:
    """Path errors as recorded and under both rotation tests."""
    split = "cross-trajectory" if suffix else "standard"
    rows: list[tuple[Cell, ...]] = []
    for row in (*paper.MAIN, *BASELINES):
        printed = {} if suffix else row.paper
        rows.append(
            (
                row.label,
                row.law,
                row.seen,
                _parameters(results, row.run + suffix),
                _number(results, row.run + suffix, ID, "ate_se3"),
                _paper(printed.get(ID)),
                _number(results, row.run + suffix, VECTORS, "ate_se3"),
                _paper(printed.get(VECTORS)),
                _number(results, row.run + suffix, REMOUNTED, "ate_se3"),
                _seeds(results, row.run + suffix),
            )
        )
    return Table(
        name=f"main{suffix}",
        title=f"Path errors on NanoBench, {split} split",
        note="ATE in m after the best rotation and shift; networks alone, true attitude. "
        "ID/SO(3) turns the vectors handed to a network, the paper's test; remount turns the "
        f"sensor and its attitude with it. {SPREAD}",
        columns=(
            "network",
            "obeys",
            "input",
            "parameters",
            "ATE",
            "paper: ATE",
            "ID/SO(3) ATE",
            "paper: ID/SO(3) ATE",
            "remount ATE",
            "seeds",
        ),
        rows=tuple(rows),
    )


def velocity_table(results: Results) -> Table:
    """Velocity errors under both rotation tests."""
    metrics: tuple[tuple[RotationTest, str], ...] = tuple((t, "velocity_rmse") for t in TESTS)
    return Table(
        name="velocity",
        title="Velocity under rotations",
        note=f"Root mean square error in m/s, three components together. {SPREAD}",
        columns=("network", "input", *(f"{test} velocity" for test in TESTS), "mean law error"),
        rows=tuple(
            (
                row.label,
                row.seen,
                *(_number(results, row.run, test, metric) for test, metric in metrics),
                "–" if row in BASELINES else _number(results, row.run, VECTORS, "mean_law_error"),
            )
            for row in (*paper.MAIN, *BASELINES)
        ),
    )


def augmentation_table(results: Results) -> Table:
    """What rotated training windows do to networks without the law."""
    return Table(
        name="augmentation",
        title="Architecture against augmentation",
        note="Windows of training turned by right angles or by any rotation. ATE in m. " + SPREAD,
        columns=("network", "obeys", "input", "ATE", "ID/SO(3) ATE", "remount ATE"),
        rows=tuple(
            (
                row.label,
                row.law,
                row.seen,
                *(_number(results, row.run, test, "ate_se3") for test in TESTS),
            )
            for row in (*paper.AUGMENTATION, *BASELINES)
        ),
    )


def capacity_table(results: Results) -> Table:
    """GINIO-A in two sizes against AirIO."""
    return Table(
        name="capacity",
        title="Capacity of recurrent networks",
        note=f"ATE in m. {SPREAD}",
        columns=("network", "obeys", "input", "parameters", "ATE", "paper: ATE", "ID/SO(3) ATE"),
        rows=tuple(
            (
                row.label,
                row.law,
                row.seen,
                _parameters(results, row.run),
                _number(results, row.run, ID, "ate_se3"),
                _paper(row.paper.get(ID)),
                _number(results, row.run, VECTORS, "ate_se3"),
            )
            for row in (*paper.CAPACITY, *BASELINES)
        ),
    )


def covariance_table(results: Results) -> Table:
    """Heads and losses; the last two rows share one mean to the last bit."""
    metrics: tuple[tuple[str, str, RotationTest], ...] = (
        ("velocity RMSE", "velocity_rmse", ID),
        ("NLL", "nll", ID),
        ("½ Mahalanobis", "nll_mahalanobis", ID),
        ("½ log det", "nll_log_det", ID),
        ("NEES", "nees", ID),
        ("cov95", "cov95", ID),
        ("Σ law error", "covariance_law_error", VECTORS),
        ("μ law error", "mean_law_error", VECTORS),
    )
    columns: list[str] = ["head, loss"]
    for name, metric, _ in metrics:
        printed = any(metric in row.paper for row in paper.COVARIANCE)
        columns += [name, f"paper: {name}"] if printed else [name]
    rows: list[tuple[Cell, ...]] = []
    for row in (*paper.COVARIANCE, *BASELINES):
        cells: list[Cell] = [row.label]
        for name, metric, test in metrics:
            known = metric == "velocity_rmse" or row not in BASELINES
            cells.append(_number(results, row.run, test, metric) if known else "–")
            if f"paper: {name}" in columns:
                cells.append(_paper(row.paper.get(metric)))
        rows.append((*cells, _factor(results, row)))
    return Table(
        name="covariance",
        title="Covariance: heads and losses",
        note="NLL without its constant; an honest Σ has NEES 3 and cov95 0.95. Under MSE, Σ is "
        "fitted beside the mean and does not shape it. Law errors: the paper's test, relative for "
        "Σ, in m/s for the mean. Factor: what validation windows would have Σ multiplied by; it is "
        f"not applied here. {SPREAD}",
        columns=(*columns, "factor"),
        rows=tuple(rows),
    )


def mismatch_table(results: Results, kind: ErrorKind, course: Course) -> Table:
    """Path errors against the angle by which a frame is wrong."""
    rows: list[tuple[Cell, ...]] = []
    for row in paper.GRAVITY_ERROR if kind == "gravity" else paper.RELATIVE_ERROR:
        cells: list[Cell] = [row.label, row.seen, _number(results, row.run, ID, "ate_se3")]
        for angle in ANGLES_DEG:
            name = FrameError(kind, course, angle).name
            found = results.summary(row.run, "frame errors", name, "ate_se3")
            cells.append(Number.of(found))
        rows.append(tuple(cells))
        if row.paper:
            printed = (_paper(row.paper[f"{angle:g}°"], 2) for angle in ANGLES_DEG)
            rows.append((f"paper: {row.label}", "", "–", *printed))
    for row in BASELINES:
        still = _number(results, row.run, ID, "ate_se3")
        rows.append((row.label, "", still, *(still if still is None else "same",) * 5))
    frame = "Gravity-frame" if kind == "gravity" else "LFA relative-frame"
    return Table(
        name=f"mismatch-{kind}-{course}",
        title=f"{frame} error, {course}",
        note="ATE in m with the frame off by an angle about random axes; the paper does not say "
        f"how its errors go through time. {SPREAD}",
        columns=("network", "input", "0°", *(f"{angle:g}°" for angle in ANGLES_DEG)),
        rows=tuple(rows),
    )


def mismatch_covariance_table(results: Results) -> Table:
    """What a wrong frame does to two heads on one mean, and to their difference."""
    diagonal, spectral = (row.run for row in paper.ON_GIVEN_MEAN)
    rows: list[tuple[Cell, ...]] = []
    for kind in KINDS:
        for course in COURSES:
            names = [FrameError(kind, course, angle).name for angle in ANGLES_DEG]
            for run, label in ((diagonal, "diagonal"), (spectral, "spectral")):
                found = (results.summary(run, "frame errors", name, "nll") for name in names)
                start = _number(results, run, ID, "nll")
                rows.append((label, f"{kind}, {course}", start, *map(Number.of, found)))
            asked = [("rotations", ID), *(("frame errors", name) for name in names)]
            cells = (_difference(results, spectral, diagonal, *where, "nll") for where in asked)
            rows.append(("spectral less diagonal", f"{kind}, {course}", *cells))
    return Table(
        name="mismatch-covariance",
        title="Covariance under frame errors, one mean",
        note="NLL with the frame off by an angle; the paper did this with a filter on TLIO. "
        f"Differences are paired by recording. {SPREAD}",
        columns=("head", "error", "0°", *(f"{angle:g}°" for angle in ANGLES_DEG)),
        rows=tuple(rows),
    )


def remount_table(results: Results) -> Table:
    """Path errors of a sensor that was taken off and put on again."""
    reference = _unseen(results, "resnet1d", "ate_se3")
    rows: list[tuple[Cell, ...]] = []
    for row in (*paper.REMOUNT, *BASELINES):
        cells: list[Cell] = [row.label]
        for condition in CONDITIONS:
            found = results.summary(row.run, "remounting", condition, "ate_se3")
            cells.append(Number.of(found))
            if condition in {NOMINAL, *UNSEEN}:
                cells.append(_paper(row.paper.get(condition)))
        unseen = _unseen(results, row.run, "ate_se3")
        cells += [unseen, _paper(row.paper.get("unseen"))]
        cells.append(_unseen(results, row.run, "normalised_ate"))
        gain = None if unseen is None or reference is None else reference.value / unseen.value
        cells.append(None if gain is None else Number(gain, digits=1))
        rows.append(tuple(cells))
    columns = ["network"]
    for condition in CONDITIONS:
        printed = condition in {NOMINAL, *UNSEEN}
        columns += [condition, f"paper (Fetch): {condition}"] if printed else [condition]
    return Table(
        name="remount",
        title="A sensor taken off and put on again",
        note="ATE in m on flights of NanoBench, changed as a remount changes them; the paper's "
        "numbers are of a Fetch robot. Unseen: mean of TC1 and TC2; normalised by the path's "
        f"length in percent; gain over ResNet1D. {SPREAD}",
        columns=(*columns, "unseen", "paper (Fetch): unseen", "unseen nATE %", "gain ×"),
        rows=tuple(rows),
    )


def comparison_table(results: Results) -> Table:
    """Differences of networks, recording by recording."""
    labels = {row.run: row.label for row in _every_row()}
    rows: list[tuple[Cell, ...]] = []
    for run, other, metric in paper.PAIRS:
        cells: list[Cell] = [f"{_named(run, labels)} less {_named(other, labels)}", metric]
        for test in TESTS:
            found = results.comparison(run, other, "rotations", test, metric)
            cells.append(_difference(results, run, other, "rotations", test, metric))
            cells.append(None if found is None else Number(found.p_value, digits=4))
        rows.append(tuple(cells))
    columns = [name for test in TESTS for name in (test, f"{test} p")]
    return Table(
        name="comparisons",
        title="Paired comparisons",
        note="Difference of the means over the same recordings with its bootstrap 95 % interval, "
        "and the p-value of a two-sided sign-flip test. Below zero the first is better.",
        columns=("networks", "metric", *columns),
        rows=tuple(rows),
    )


def _every_row() -> Iterator[Row]:
    for rows in (paper.COVARIANCE, paper.RELATIVE_ERROR, paper.CAPACITY, paper.AUGMENTATION):
        yield from rows
    yield from paper.MAIN


def _named(run: str, labels: dict[str, str]) -> str:
    return f"{labels.get(run, run)} ({run})"


def _number(results: Results, run: str, test: RotationTest, metric: str) -> Number | None:
    return Number.of(results.summary(run, "rotations", test, metric))


def _difference(
    results: Results, run: str, other: str, protocol: str, test: str, metric: str
) -> Number | None:
    found = results.comparison(run, other, protocol, test, metric)
    if found is None:
        return None
    d = found.difference
    return Number(d.mean, d.low, d.high)


def _paper(value: float | None, digits: int = 3) -> Cell:
    return "–" if value is None else Paper(value, digits)


def _parameters(results: Results, run: str) -> Cell:
    made = results.made(run)
    if made is None:
        return None
    return f"{made['parameters']:,}" if "parameters" in made else "–"


def _factor(results: Results, row: Row) -> Cell:
    """What validation would make of Σ, averaged over seeds."""
    found = [r.made.get("covariance_factor") for r in results.of(row.run, "rotations")]
    known = [factor for factor in found if factor is not None]
    if row in BASELINES:
        return "–"
    return Number(sum(known) / len(known)) if known else None


def _seeds(results: Results, run: str) -> Cell:
    found = results.of(run, "rotations")
    if not found:
        return None
    return "–" if "parameters" not in found[0].made else str(len(found))


def _unseen(results: Results, run: str, metric: str) -> Number | None:
    """Mean over the two unseen mountings, flight by flight."""
    values = [results.values(run, "remounting", condition, metric) for condition in UNSEEN]
    known = [value for value in values if value is not None]
    if len(known) < len(UNSEEN):
        return None
    over = bootstrap(torch.stack(known).mean(0))
    return Number(over.mean, over.low, over.high, digits=1 if metric == "normalised_ate" else 3)
