"""`ginio remount`: real recordings of several mountings, a folder for each."""

import json
from pathlib import Path

import pytest
from tiny_runs import TINY, TINY_RESNET, save

from ginio import cli
from ginio.cli.console import CONSOLE
from ginio.data.export import write_nanobench
from ginio.data.remounting import RemountConfig
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed, fly_one
from ginio.evaluation.remounting import NOMINAL, TC1, TC2, RemountingConfig, conditions

FOLDERS = ["--nominal", "nominal", "--tc1", "TC1", "--tc2", "TC2"]


@pytest.fixture(autouse=True, scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user would have recorded: one flight on each of three mountings."""
    root = tmp_path_factory.mktemp("recorded")
    config = QuadrotorConfig(shapes=(Shape.STAR,), speeds=(Speed.FAST,), duration_s=15.0)
    turned = RemountingConfig(changes=RemountConfig.rotation_only())
    for condition, recording in conditions(fly_one(config, 0, seed=8), 0, turned):
        if condition in {NOMINAL, TC1, TC2}:
            write_nanobench(recording, root / condition, compressed=False)
    save(root / "ginio", TINY)
    save(root / "resnet", TINY_RESNET)
    return root


@pytest.fixture(autouse=True)
def here(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(recorded)
    monkeypatch.setattr(CONSOLE, "width", 200)


def test_every_mounting_is_scored_and_the_law_shows(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["remount", "ginio", "resnet", *FOLDERS, "--device", "cpu", "--json", "found.json"]
    assert cli.run(arguments) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("Remounting; attitude: truth", NOMINAL, TC1, TC2))
    found = json.loads(Path("found.json").read_text())
    assert found["folders"] == {NOMINAL: "nominal", TC1: "TC1", TC2: "TC2"}
    ate = {
        name: {s["test"]: s["metrics"]["ate_se3"] for s in rows}
        for name, rows in found["scores"].items()
    }
    assert list(ate["ginio"]) == [NOMINAL, TC1, TC2]
    for condition in (TC1, TC2):
        assert ate["ginio"][condition] == pytest.approx(ate["ginio"][NOMINAL], abs=1e-3)
        assert abs(ate["resnet"][condition] - ate["resnet"][NOMINAL]) > 1e-3


def test_one_mounting_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["remount", "ginio", "--nominal", "TC1", "--device", "cpu"]) == 0
    assert "nominal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nominal", "nominal"], "no network to score"),
        (["ginio", "--nominal", "gone"], "gone: no such folder"),
        (["gone", "--nominal", "nominal"], "no trained network 'gone'"),
    ],
)
def test_what_cannot_work_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["remount", *arguments]) == 2
    assert message in capsys.readouterr().err
