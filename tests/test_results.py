"""Figures in the README are those of the committed results, and results say what made them."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ginio.evaluation.results import Results
from ginio.evaluation.study_tables import all_tables
from ginio.evaluation.tables import Table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = sorted((ROOT / "results").glob("*.json"))
NETWORK_ONLY = ROOT / "results" / "nanobench-standard.json"
FUSED = ROOT / "results" / "nanobench-filter.json"
STUDY = ROOT / "results" / "nanobench-study"
VECTORS, REMOUNT = "ID/SO(3) vectors", "ID/SO(3) remount"
Summary = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]

each_file = pytest.mark.parametrize("path", RESULTS, ids=lambda p: p.name)


def summary(path: Path) -> Summary:
    return json.loads(path.read_text(encoding="utf-8"))["summary"]


def ate(tests: Mapping[str, Any], test: str, *, interval: bool = False) -> str:
    found = tests[test]["ate_se3"]
    shown = f"{found['mean']:.3f}"
    return f"{shown} [{found['low']:.3f}, {found['high']:.3f}]" if interval else shown


def network_only_row(name: str, tests: Mapping[str, Any]) -> str:
    own = tests["ID/ID"]
    cells = [ate(tests, "ID/ID", interval=True), ate(tests, VECTORS), ate(tests, REMOUNT)]
    cells.append(f"{own['velocity_rmse']['mean']:.3f}")
    known = "nees" in own
    cells.append(f"{own['nees']['mean']:.1f}" if known else "–")
    cells.append(f"{100 * own['cov95']['mean']:.0f} %" if known else "–")
    return f"| {name} | {' | '.join(cells)} |"


def fused_row(name: str, tests: Mapping[str, Any]) -> str:
    own = tests["ID/ID"]
    cells = [ate(tests, "ID/ID", interval=True), ate(tests, REMOUNT)]
    cells.append(f"{own['velocity_rmse']['mean']:.3f}")
    known = "nis" in own
    cells += [f"{own[m]['mean']:.1f}" if known else "–" for m in ("tilt_deg", "nis", "nees")]
    return f"| {name} | {' | '.join(cells)} |"


def test_there_are_results() -> None:
    assert NETWORK_ONLY in RESULTS
    assert FUSED in RESULTS


@each_file
def test_a_file_says_what_made_it(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["command"].startswith("ginio ")
    assert found["commit"]
    assert not found["commit"].endswith("-dirty")
    assert found["split_sha256"]
    assert found["versions"]["torch"]


@each_file
def test_the_trivial_baselines_stand_in_every_table(path: Path) -> None:
    assert {"standing still", "strapdown"} <= set(summary(path))


@pytest.mark.parametrize(("name", "tests"), summary(NETWORK_ONLY).items())
def test_the_readme_has_every_network_with_its_figures(name: str, tests: Mapping[str, Any]) -> None:
    assert network_only_row(name, tests) in README


@pytest.mark.parametrize(("name", "tests"), summary(FUSED).items())
def test_the_readme_has_every_filter_run_with_its_figures(
    name: str, tests: Mapping[str, Any]
) -> None:
    assert fused_row(name, tests) in README


@cache
def study() -> Results:
    return Results.read(STUDY.with_suffix(".jsonl.xz"))


@cache
def study_tables() -> Mapping[str, Table]:
    return {table.name: table for table in all_tables(study())}


def study_row(table: Table, row: int) -> str:
    cells = dict(zip(table.columns, table.rows[row], strict=True))
    shown = ("network", "obeys", "parameters", "ATE", "ID/SO(3) ATE")
    printed = ("paper: ATE", "paper: ID/SO(3) ATE")
    texts = [str(cells[name]) for name in (*shown, *printed)]
    return f"| {' | '.join(text or '–' for text in texts)} |"


def test_the_study_says_what_made_it() -> None:
    assert len(study().found) > 150
    for result in study().found:
        made = result.made
        assert made["command"].startswith("ginio reproduce nanobench --seeds ")
        assert not made["is_smoke"]
        assert not made["commit"].endswith("-dirty")
        assert made["split_sha256"]
        assert made["versions"]["torch"]


@pytest.mark.parametrize("row", range(11))
def test_the_readme_has_the_main_table_of_the_study(row: int) -> None:
    assert study_row(study_tables()["main"], row) in README


def test_tables_of_the_study_are_those_of_its_results() -> None:
    written = {path.stem: path.read_text(encoding="utf-8") for path in STUDY.glob("*.csv")}
    assert {"main", "main-cross", "augmentation", "covariance", "remount"} <= set(written)
    for name, table in study_tables().items():
        assert table.csv() == written[name], name
