"""Tables and figures of a study: what was found, what the paper says, and what is missing."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ginio.evaluation import paper
from ginio.evaluation.calibration import Calibration
from ginio.evaluation.frame_errors import SweepConfig
from ginio.evaluation.protocols import STANDING_STILL, STRAPDOWN, TESTS, Score
from ginio.evaluation.remounting import CONDITIONS
from ginio.evaluation.report import SMOKE, Report
from ginio.evaluation.results import Result, Results, read_result, write_result
from ginio.evaluation.statistics import Interval, bootstrap, compare
from ginio.evaluation.study_figures import all_figures, cdf_figure, coverage_figure
from ginio.evaluation.study_tables import (
    all_tables,
    comparison_table,
    main_table,
    mismatch_covariance_table,
    mismatch_table,
    remount_table,
)
from ginio.evaluation.tables import Number, Paper, Table
from ginio.presets import NANOBENCH_STUDY

METRICS = (
    "ate_se3",
    "velocity_rmse",
    "nll",
    "nll_mahalanobis",
    "nll_log_det",
    "nees",
    "cov95",
    "mean_law_error",
    "covariance_law_error",
    "normalised_ate",
)
MADE = {
    "parameters": 1234567,
    "command": "ginio <reproduce>",
    "commit": "abc",
    "split": "standard",
    "split_sha256": "0123",
    "versions": {"torch": "2"},
    "truth": "published",
    "is_smoke": False,
}
ERRORS = SweepConfig().errors


def result(run: str, tests: tuple[str, ...], protocol: str, scale: float, seed: int = 0) -> Result:
    """Three recordings whose errors are 1, 2 and 3 times a scale, a tenth more for each seed."""
    scores = tuple(
        Score(f"flight{n}", test, "truth", dict.fromkeys(METRICS, scale * n + 0.1 * seed))
        for test in tests
        for n in (1, 2, 3)
    )
    return Result(run=run, seed=seed, protocol=protocol, made=MADE, scores=scores)


def curve(run: str, seed: int = 0) -> Result:
    levels = (0.1, 0.5, 0.9)
    calibration = Calibration(levels, (0.2, 0.4, 0.8), (1.5, 2.5), (-3.0, -4.0), 2)
    return Result(run=run, seed=seed, protocol="calibration", made=MADE, calibration=calibration)


FEW = Results(
    (
        result(STANDING_STILL, TESTS, "rotations", 0.4),
        result(STRAPDOWN, TESTS, "rotations", 9.0),
        result("resnet1d", TESTS, "rotations", 0.3),
        result("ginio-rd", TESTS, "rotations", 0.2),
        result("ginio-rd", TESTS, "rotations", 0.2, seed=1),
        result("ginio-rs", TESTS, "rotations", 0.25),
        result("ginio-rs", tuple(e.name for e in ERRORS), "frame errors", 0.3),
        result("resnet1d", CONDITIONS, "remounting", 2.0),
        result("ginio-rd", CONDITIONS, "remounting", 0.5),
        curve("ginio-rs"),
    )
)


def assert_number(found: object, expected: Interval) -> None:
    assert isinstance(found, Number)
    values = (expected.mean, expected.low, expected.high)
    assert (found.value, found.low, found.high) == pytest.approx(values, abs=1e-6)


def by_label(table: Table) -> dict[str, dict[str, object]]:
    return {str(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}


# What is in the tables


def test_every_row_is_a_run_of_the_study() -> None:
    """And every run of the study is in some table."""
    groups = (
        paper.MAIN,
        paper.AUGMENTATION,
        paper.CAPACITY,
        paper.COVARIANCE,
        paper.GRAVITY_ERROR,
        paper.RELATIVE_ERROR,
        paper.REMOUNT,
    )
    named = {row.run for rows in groups for row in rows}
    assert named <= set(NANOBENCH_STUDY)
    cross = {f"{row.run}-cross" for row in paper.MAIN}
    assert named | cross == set(NANOBENCH_STUDY)
    assert {run for *pair, _ in paper.PAIRS for run in pair} <= named


@pytest.mark.parametrize(
    ("rows", "protocol"),
    [
        (paper.COVARIANCE, "calibration"),
        (paper.GRAVITY_ERROR, "frame errors"),
        (paper.RELATIVE_ERROR, "frame errors"),
        (paper.ON_GIVEN_MEAN, "frame errors"),
        (paper.REMOUNT, "remounting"),
    ],
)
def test_every_row_is_judged_by_what_its_table_needs(
    rows: tuple[paper.Row, ...], protocol: str
) -> None:
    assert [r.run for r in rows if protocol not in NANOBENCH_STUDY[r.run].protocols] == []


def test_rows_of_the_main_table_are_what_they_say() -> None:
    frames = {"body": "body", "body+att.": "body+attitude", "gravity-aligned": "gravity"}
    for row in (*paper.MAIN, *paper.AUGMENTATION, *paper.CAPACITY):
        run = NANOBENCH_STUDY[row.run].config
        expected = frames.get(row.seen, "last")
        assert run.representation.value == expected, row.run
        assert str(run.network.mean_symmetry) == row.law, row.run


def test_our_number_stands_beside_the_papers() -> None:
    rows = by_label(main_table(FEW))
    resnet = rows["ResNet1D"]
    expected = bootstrap(torch.tensor([0.3, 0.6, 0.9], dtype=torch.float64))
    assert_number(resnet["ATE"], expected)
    assert resnet["paper: ATE"] == Paper(0.645)
    assert resnet["paper: ID/SO(3) ATE"] == Paper(0.710)
    assert resnet["parameters"] == "1,234,567"
    assert resnet["seeds"] == "1"


def test_what_was_not_found_is_missing_and_nothing_else() -> None:
    rows = by_label(main_table(FEW))
    airio = rows["AirIO (no att.)"]
    assert airio["ATE"] is None
    assert airio["parameters"] is None
    assert airio["paper: ATE"] == Paper(5.579)
    table = main_table(FEW)
    assert table.html().count('class="missing"') == 6 * 5
    assert "missing" not in by_label(table)["standing still"].values()
    nothing = Results(())
    for table in all_tables(nothing):
        cells = [cell for row in table.rows for cell in row[1:]]
        assert not any(isinstance(cell, Number) for cell in cells)
        assert any(cell is None for cell in cells)


def test_standing_still_and_strapdown_stand_in_every_table_of_paths() -> None:
    for table in all_tables(FEW):
        if table.name not in {"comparisons", "mismatch-covariance"}:
            assert {"standing still", "strapdown"} <= set(by_label(table)), table.name
    assert by_label(main_table(FEW))["standing still"]["ATE"] is not None


def test_several_seeds_have_a_spread() -> None:
    """Each recording is averaged over seeds first, so that an interval is over recordings."""
    number = by_label(main_table(FEW))["GINIO-RD"]["ATE"]
    assert isinstance(number, Number)
    assert number.value == pytest.approx(0.45)
    assert number.std == pytest.approx(0.1 / 2**0.5)
    expected = bootstrap(torch.tensor([0.25, 0.45, 0.65]).double())
    assert (number.low, number.high) == pytest.approx((expected.low, expected.high))
    assert str(number).startswith("0.450 ± 0.071 [")


def test_networks_are_compared_recording_by_recording() -> None:
    rows = by_label(comparison_table(FEW))
    row = rows["GINIO-RD (ginio-rd) less ResNet1D (resnet1d)"]
    found = compare(
        torch.tensor([0.25, 0.45, 0.65]).double(), torch.tensor([0.3, 0.6, 0.9]).double()
    )
    assert_number(row["ID/ID"], found.difference)
    assert row["ID/ID p"] == Number(found.p_value, digits=4)
    missing = rows["GINIO-A (no att.) (ginio-a-reduced) less AirIO (no att.) (airio)"]
    assert missing["ID/ID"] is None


def test_mismatch_tables_have_the_papers_rows_below_ours() -> None:
    table = mismatch_table(FEW, "relative", "varying")
    labels = [row[0] for row in table.rows]
    assert labels[:2] == ["ResNet1D", "paper: ResNet1D"]
    rows = by_label(table)
    assert rows["GINIO-RS"]["20°"] is not None
    assert rows["GINIO-RD"]["20°"] is None
    assert rows["paper: GINIO-RD"]["20°"] == Paper(0.60, 2)


def test_heads_on_one_mean_are_compared_under_every_error() -> None:
    both = Results(
        tuple(
            result(run, tests, protocol, scale)
            for run, scale in (("given-diagonal", 0.2), ("given-spectral", 0.3))
            for tests, protocol in (
                (TESTS, "rotations"),
                (tuple(e.name for e in ERRORS), "frame errors"),
            )
        )
    )
    table = mismatch_covariance_table(both)
    assert len(table.rows) == 4 * 3
    for row in table.rows[2::3]:
        assert row[0] == "spectral less diagonal"
        assert [cell.value for cell in row[2:] if isinstance(cell, Number)] == pytest.approx(
            [0.2] * 6
        )
    assert [row[1] for row in table.rows[::3]] == [
        "gravity, constant",
        "gravity, varying",
        "relative, constant",
        "relative, varying",
    ]


def test_the_gain_is_over_the_resnet() -> None:
    rows = by_label(remount_table(FEW))
    assert rows["ResNet1D"]["gain ×"] == Number(1.0, digits=1)
    assert rows["GINIO-RD"]["gain ×"] == Number(4.0, digits=1)
    assert rows["GINIO-RD"]["paper (Fetch): unseen"] == Paper(0.495)
    assert rows["GINIO-E"]["gain ×"] is None


# Formats


def test_a_csv_holds_numbers_intervals_and_spreads() -> None:
    rows = list(csv.DictReader(io.StringIO(main_table(FEW).csv())))
    rd = next(row for row in rows if row["network"] == "GINIO-RD")
    assert float(rd["ATE"]) == pytest.approx(0.45)
    assert float(rd["ATE low"]) < float(rd["ATE"]) < float(rd["ATE high"])
    assert float(rd["ATE std"]) == pytest.approx(0.1 / 2**0.5)
    assert float(rd["paper: ATE"]) == 0.581
    airio = next(row for row in rows if row["network"] == "AirIO (no att.)")
    assert airio["ATE"] == airio["ATE low"] == ""


def test_latex_has_as_many_cells_in_every_row_and_nothing_it_cannot_set() -> None:
    for table in all_tables(FEW):
        lines = [line for line in table.latex().splitlines() if line.endswith(r"\\")]
        assert len(lines) == len(table.rows) + 1
        ampersands = {len(re.findall(r"(?<!\\)&", line)) for line in lines}
        assert ampersands == {len(table.columns) - 1}
        assert not re.search(r"[±°Σμ×→–½_](?<!\\_)", "".join(lines)), table.name


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(0.123456), "0.123"),
        (Number(4.34e-4), "4.34e-04"),
        (Number(0.0), "0.000"),
        (Number(-1.8751), "-1.875"),
        (Number(1.0, 0.5, 1.5), "1.000 [0.500, 1.500]"),
        (Number(1.0, 0.5, 1.5, 0.25, digits=1), "1.0 ± 0.2 [0.5, 1.5]"),
    ],
)
def test_numbers_are_written_with_three_digits(number: Number, text: str) -> None:
    assert str(number) == text


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="table t: expected 2 cells a row; found 1"):
        Table("t", "", "", ("a", "b"), (("x",),))


# Figures and the page


def test_figures_draw_what_was_found_and_name_what_was_not() -> None:
    drawn = {d.name: d for d in all_figures(FEW)}
    coverage = coverage_figure(FEW)
    assert [trace["name"] for trace in coverage.figure["data"]] == ["ideal", "spectral, NLL"]
    assert coverage.figure["data"][1]["y"] == [0.2, 0.4, 0.8]
    assert any("given-spectral" in name for name in coverage.missing)
    assert not any("(ginio-rs)" in name for name in coverage.missing)
    (sweep,) = (
        t for t in drawn["mismatch-gravity-constant-figure"].figure["data"] if "RS" in t["name"]
    )
    assert sweep["x"] == [0, 3, 5, 10, 15, 20]
    assert sweep["y"] == [0.5, *[0.6] * 5]
    steps = next(t for t in cdf_figure(FEW).figure["data"] if t["name"] == "ResNet1D")
    assert steps["x"] == [0.3, 0.3, 0.6, 0.9]
    assert steps["y"] == pytest.approx([0, 1 / 3, 2 / 3, 1], abs=1e-4)


def test_figures_are_numbers_and_latex_too() -> None:
    """With the intervals of points, names as labels, and logarithmic axes."""
    drawn = {d.name: d for d in all_figures(FEW)}
    rows = list(csv.DictReader(io.StringIO(drawn["velocity-figure"].csv())))
    (resnet,) = (r for r in rows if r["curve"] == "ID/ID" and r["x"] == "ResNet1D")
    assert float(resnet["low"]) < float(resnet["y"]) == 0.6 < float(resnet["high"])
    assert "symbolic x coords={{ResNet1D}," in drawn["velocity-figure"].latex()
    assert "({ResNet1D},0.6)" in drawn["velocity-figure"].latex()
    assert "xmode=log" in drawn["cdf"].latex()
    assert "(0.3,0.0)" in drawn["cdf"].latex()
    for drawing in drawn.values():
        latex = drawing.latex()
        traces = len(drawing.figure["data"])
        assert latex.count(r"\addplot") == latex.count(r"\addlegendentry") == traces
        assert latex.count("{") == latex.count("}")


def test_the_page_holds_everything_and_asks_for_nothing() -> None:
    report = Report.of(FEW)
    page = report.html()
    for part in (*report.tables, *report.figures):
        assert f'id="{part.name}"' in page
        assert f'href="#{part.name}"' in page
    embedded = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
    assert embedded is not None
    assert set(json.loads(embedded[1])) == {d.name for d in report.figures}
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="(?!#)', outside)
    assert "ginio &lt;reproduce&gt;" in page
    assert SMOKE not in page
    assert len({part.name for part in (*report.tables, *report.figures)}) == len(
        (*report.tables, *report.figures)
    )


def test_a_trial_is_not_taken_for_a_study() -> None:
    trial = replace(FEW.found[0], made=MADE | {"is_smoke": True})
    assert SMOKE in Report.of(Results((trial, *FEW.found[1:]))).html()


# Files


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    for number, one in enumerate((FEW.found[0], curve("x"))):
        path = tmp_path / "results" / f"{number}.json"
        write_result(path, one)
        assert read_result(path) == one
    assert len(Results.read(tmp_path).found) == 2


def test_recordings_that_differ_are_not_compared() -> None:
    short = replace(FEW.found[2], run="other", scores=FEW.found[2].scores[:2])
    results = Results((*FEW.found, short))
    assert results.comparison("resnet1d", "other", "rotations", TESTS[0], "ate_se3") is None
