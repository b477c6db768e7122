"""`ginio evaluate`: what it prints, writes and refuses, in this process."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from strategies import circling, yaw_matrices

import ginio
from ginio import cli
from ginio.cli import evaluate as evaluate_command
from ginio.cli.console import CONSOLE
from ginio.core import Quantity
from ginio.data.corpus import Corpus
from ginio.data.sources import Source, open_source
from ginio.evaluation.protocols import TESTS
from ginio.evaluation.statistics import bootstrap, compare
from ginio.models import AnyConfig, ResNet1dConfig, TemporalConfig
from ginio.runtime.checkpoint import Card, save_run

SMALL = TemporalConfig(window=8, groups=((4, 1),), norm="layer", head_narrow=2, head_hidden=6)
SMALL_RESNET = ResNet1dConfig(window=8, groups=((4, 1),), head_narrow=2, head_hidden=4)
QUICK = ["--rotations", "2", "--stride", "6"]
BASELINES = ["standing still", "strapdown"]
CARD = Card(network=SMALL, rate_hz=25.0)
Asked = list[dict[str, object]]
Save = Callable[..., None]


def aboard(seed: int) -> Corpus:
    """Recordings whose onboard heading is off."""
    R_error = yaw_matrices(torch.tensor([0.5], dtype=torch.float64))[0].float()
    made = [circling(seed + i, 60) for i in range(3)]
    return Corpus.join([replace(r, onboard_R_ws=R_error @ r.truth.R_ws) for r in made])


@pytest.fixture(scope="module")
def source() -> Source:
    corpora = {side: aboard(10 * i) for i, side in enumerate(("train", "val", "test"))}
    return Source(corpora, 25.0, "standard", "0123abcd")


@pytest.fixture(autouse=True)
def asked(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What data was asked for, in a folder to work in."""
    asked: Asked = []

    def open_small(dataset: str, **how: object) -> Source:
        asked.append({"dataset": dataset, **how})
        return source

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluate_command, "open_source", open_small)
    monkeypatch.setattr(CONSOLE, "width", 200)
    return asked


@pytest.fixture
def runs() -> list[str]:
    save("ginio", SMALL)
    save("resnet", SMALL_RESNET)
    return ["ginio", "resnet"]


def save(name: str, network: AnyConfig = SMALL, card: Card = CARD) -> None:
    made = network.build()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    save_run(Path(name), replace(card, network=network), made)


def evaluate(*arguments: str) -> int:
    return cli.run(["evaluate", *arguments, *QUICK])


def document(*arguments: str) -> dict[str, Any]:
    assert evaluate(*arguments, "--json", "deep/er/scores.json") == 0
    return json.loads(Path("deep/er/scores.json").read_text())


def test_every_score_is_written_with_what_made_it(runs: list[str], asked: Asked) -> None:
    found = document(*runs, "--data", "flights")
    assert found["command"] == (
        "ginio evaluate ginio resnet --dataset nanobench --split standard --side test "
        "--truth published"
    )
    assert found["truth"] == "published"
    assert found["split_sha256"] == "0123abcd"
    assert found["versions"]["ginio"] == ginio.__version__
    assert found["versions"]["torch"] == torch.__version__
    assert found["commit"]
    expected = {"tests": [*TESTS], "rotations": 2, "seed": 0, "stride": 6, "attitude": "truth"}
    assert found["protocol"] == expected
    assert list(found["scores"]) == list(found["summary"]) == [*BASELINES, *runs]
    assert asked == [
        {
            "dataset": "nanobench",
            "split": "standard",
            "decimate_by": 4,
            "root": Path("flights"),
            "truth": "published",
        }
    ]


def test_every_row_says_recording_test_and_attitude(runs: list[str], source: Source) -> None:
    found = document(*runs)
    rows = [(name, test) for name in source.corpora["test"].names for test in TESTS]
    for scores in found["scores"].values():
        assert sorted((s["recording"], s["test"]) for s in scores) == sorted(rows)
        assert {s["attitude"] for s in scores} == {"truth"}
    for name in runs:
        assert all("covariance_law_error" in s["metrics"] for s in found["scores"][name])


def test_summary_and_comparison_are_those_of_the_scores(runs: list[str]) -> None:
    found = document(*runs)

    def values(name: str, test: str, metric: str = "ate_se3") -> torch.Tensor:
        rows = [s for s in found["scores"][name] if s["test"] == test]
        return torch.tensor([s["metrics"][metric] for s in rows], dtype=torch.float64)

    for name in [*BASELINES, *runs]:
        for test in TESTS:
            for metric, interval in found["summary"][name][test].items():
                expected = bootstrap(values(name, test, metric))
                assert interval["mean"] == pytest.approx(expected.mean, rel=1e-12)
                assert interval["median"] == pytest.approx(expected.median, rel=1e-12)
                assert interval["low"] == pytest.approx(expected.low, rel=1e-12)
                assert interval["high"] == pytest.approx(expected.high, rel=1e-12)
    assert list(found["comparison"]) == ["resnet - ginio"]
    for test, result in found["comparison"]["resnet - ginio"].items():
        expected = compare(values("resnet", test), values("ginio", test))
        assert result["p_value"] == expected.p_value
        assert result["difference"]["mean"] == pytest.approx(expected.difference.mean)


def test_the_law_shows_in_the_figures(runs: list[str]) -> None:
    """The file tells a network with the symmetry from one without."""
    summary = document(*runs)["summary"]
    _, vectors, remount = TESTS
    for test in (vectors, remount):
        assert summary["ginio"][test]["mean_law_error"]["mean"] < 1e-4
        assert summary["resnet"][test]["mean_law_error"]["mean"] > 1e-3


def test_one_network_is_compared_with_nothing(runs: list[str]) -> None:
    assert document("ginio")["comparison"] == {}


def test_the_table_names_data_tests_attitude_and_networks(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(*runs) == 0
    printed = capsys.readouterr().out
    words = ["nanobench, standard split, test; attitude: truth", *TESTS, *BASELINES, *runs]
    assert all(word in printed for word in words)
    still = next(line for line in printed.splitlines() if "standing still" in line)
    assert still.count("–") == 2
    assert not Path("deep").exists()


def test_the_attitude_asked_for_is_used_and_named(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    truth, onboard = document("ginio"), document("ginio", "--attitude", "onboard")
    assert "attitude: onboard" in capsys.readouterr().out
    assert onboard["protocol"]["attitude"] == "onboard"
    assert {s["attitude"] for rows in onboard["scores"].values() for s in rows} == {"onboard"}
    errors = [d["summary"]["ginio"]["ID/ID"]["velocity_rmse"]["mean"] for d in (truth, onboard)]
    assert errors[0] != errors[1]


def test_the_side_asked_for_is_scored(runs: list[str], source: Source) -> None:
    found = document("ginio", "--side", "val")
    assert {s["recording"] for s in found["scores"]["ginio"]} == set(source.corpora["val"].names)
    assert "--side val" in found["command"]


def test_the_same_command_gives_the_same_file(runs: list[str]) -> None:
    first = document(*runs)
    torch.rand(5)
    assert document(*runs) == first
    assert document(*runs, "--seed", "1")["scores"]["resnet"] != first["scores"]["resnet"]


def test_data_is_read_once_for_each_rate(asked: Asked) -> None:
    save("a")
    save("b")
    save("c", card=replace(CARD, rate_hz=100 / 3))
    assert evaluate("a", "b", "c") == 0
    assert sorted(str(a["decimate_by"]) for a in asked) == ["3", "4"]


@pytest.mark.parametrize("rate_hz", [200.0, 30.0, 99.0])
def test_a_rate_that_recordings_do_not_give_is_refused(
    rate_hz: float, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    save("fast", card=replace(CARD, rate_hz=rate_hz))
    assert evaluate("fast") == 2
    message = f"a network for {rate_hz:g} Hz cannot be scored on recordings of 100 Hz"
    assert message in capsys.readouterr().err
    assert asked == []


def test_a_network_of_displacements_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    save("moved", card=replace(CARD, quantity=Quantity.DISPLACEMENT))
    assert evaluate("moved") == 2
    assert "sums up velocities; found a network of displacement" in capsys.readouterr().err


def test_an_onboard_attitude_that_does_not_exist_is_refused(
    runs: list[str],
    source: Source,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bare = replace(source, corpora={"test": Corpus.join([circling(1, 60)])})
    monkeypatch.setattr(evaluate_command, "open_source", lambda *_args, **_how: bare)
    assert evaluate("ginio", "--attitude", "onboard") == 2
    assert "attitude 'onboard' does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no network to score; expected a run directory or one of"),
        (["nowhere"], "no trained network 'nowhere'; expected a run directory or one of"),
        (["."], "card.json: no such file; a run directory holds one"),
    ],
)
def test_what_is_no_network_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(*arguments) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert "Traceback" not in printed


def test_data_that_is_not_there_is_one_clear_line(
    runs: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evaluate_command, "open_source", open_source)
    monkeypatch.delenv("GINIO_NANOBENCH", raising=False)
    for arguments, message in (
        (runs, "Give --data PATH or set GINIO_NANOBENCH"),
        ([*runs, "--data", "gone"], "gone: no such folder, or not a readable one"),
        (
            [*runs, "--data", "gone", "--split", "random"],
            "no split nanobench-random; expected one of",
        ),
    ):
        assert evaluate(*arguments) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (["--rotation", "3"], "--rotations"),
        (["--jsn", "x.json"], "--json"),
        (["--splits", "standard"], "--split"),
        (["--side", "dev"], "test"),
        (["--attitude", "ONBORD"], "onboard"),
        (["--dataset", "nanobanch"], "nanobench"),
        (["--tests", "ID/SO3"], "ID/SO(3) remount"),
    ],
)
def test_a_wrong_option_is_refused_with_the_right_one(
    wrong: list[str], right: str, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.run(["evaluate", "ginio", *wrong])
    assert stop.value.code == 2
    assert right in capsys.readouterr().err
    assert asked == []
