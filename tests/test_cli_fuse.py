"""`ginio fuse` on a simulated flight, with networks too small to be good."""

import json
import re
from pathlib import Path

import pytest
import tiny_runs
import torch

from ginio import cli
from ginio.cli.fuse import remounts
from ginio.data import sources
from ginio.evaluation.page import plotly_js
from ginio.geometry import so3

GINIO, RESNET = "ginio", "resnet"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sources, "SYNTHETIC_FLIGHTS", {"train": 1, "val": 1, "test": 2})
    monkeypatch.chdir(tmp_path)
    tiny_runs.save(tmp_path / GINIO, tiny_runs.TINY)
    tiny_runs.save(tmp_path / RESNET, tiny_runs.TINY_RESNET)
    return [GINIO, RESNET]


def fuse(*arguments: str) -> int:
    often = ["--update-hz", "2"]
    return cli.run(["fuse", "--dataset", "synthetic-quadrotor", *often, *arguments])


def test_flights_are_tracked_and_every_figure_written(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--flights", "1", "--rotations", "3", "--json", "f.json", "--page", "f.html"]
    assert fuse(*runs, *options) == 0
    found = json.loads(Path("f.json").read_text())
    assert list(found["scores"]) == ["standing still", "strapdown", *runs]
    assert found["settings"]["filter"] == "inekf"
    assert found["command"].startswith("ginio fuse ginio resnet --dataset synthetic-quadrotor")
    (own, turned) = found["scores"][GINIO]
    assert (own["test"], turned["test"]) == ("ID/ID", "ID/SO(3) remount")
    assert own["attitude"] == "filter, own start"
    assert turned["metrics"]["worst_change"] <= 1e-3
    assert turned["metrics"]["ate_se3"] == pytest.approx(own["metrics"]["ate_se3"], abs=1e-3)
    assert found["scores"][RESNET][1]["metrics"]["worst_change"] > 0.01
    printed = capsys.readouterr().out
    assert "inekf, own start" in printed
    page = Path("f.html").read_text().replace(plotly_js(), "")
    assert not re.search(r"(src|href)=[\"']http", page)
    figures = re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)
    assert figures is not None
    assert set(json.loads(figures[1])) >= {"path", "position", "velocity", "innovation"}


def test_the_other_filter_and_a_start_at_the_truth_are_said(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--flights", "1", "--rotations", "0", "--filter", "scekf", "--start", "truth"]
    assert fuse(runs[0], *options, "--json", "f.json") == 0
    (row,) = json.loads(Path("f.json").read_text())["scores"][GINIO]
    assert row["attitude"] == "filter, truth start"
    assert "scekf, truth start" in capsys.readouterr().out


def test_without_a_network_there_is_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuse() == 2
    assert "no network" in capsys.readouterr().err


def test_remounts_begin_with_none_and_hang_gravity_on_x() -> None:
    R_ms = remounts(5, seed=1)
    up_s = torch.tensor([0.0, 0.0, 1.0])
    assert len(R_ms) == 6
    assert torch.equal(R_ms[0], torch.eye(3))
    found = so3.rotate(R_ms[1:3], up_s.expand(2, 3))
    assert float((found - torch.tensor([[1.0, 0, 0], [-1.0, 0, 0]])).abs().max()) < 1e-6
    assert torch.equal(remounts(5, seed=1), R_ms)
    assert len(remounts(0, seed=1)) == 1
