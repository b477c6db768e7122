"""Figures in the README are those of the committed results, and results say what made them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = sorted((ROOT / "results").glob("*.json"))
NETWORK_ONLY = ROOT / "results" / "nanobench-standard.json"
FUSED = ROOT / "results" / "nanobench-filter.json"
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
