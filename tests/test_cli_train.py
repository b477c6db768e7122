"""`ginio train`: stopped, taken up, and refused, in this process."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from strategies import circling

from ginio import cli
from ginio.cli import train as train_command
from ginio.data.corpus import Corpus
from ginio.data.sources import Source
from ginio.models import TemporalConfig
from ginio.presets import RUNS
from ginio.runtime.zoo import load
from ginio.training.config import TrainConfig
from ginio.training.trainer import Trainer

SMALL = TemporalConfig(
    window=8, groups=((4, 1),), norm="layer", head_narrow=2, head_hidden=6, dropout=0.1
)
TINY = TrainConfig(
    network=SMALL, steps=18, mse_steps=9, batch=8, decimate=4, validate_every=6, warm_up_steps=3
)
NEVER = -1
Asked = list[dict[str, object]]


@pytest.fixture(scope="module")
def source() -> Source:
    corpora = {
        side: Corpus.join([circling(i, 60)]) for i, side in enumerate(("train", "val", "test"))
    }
    return Source(corpora, 25.0, "standard", "0123abcd")


@pytest.fixture(autouse=True)
def here(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """A folder to work in, one tiny run, and small data; gives what data was asked for."""
    asked: Asked = []

    def open_small(dataset: str, **how: object) -> Source:
        asked.append({"dataset": dataset, **how})
        return source

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train_command, "open_source", open_small)
    monkeypatch.setattr(train_command, "RUNS", {"tiny": TINY, "other": TINY})
    return asked


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Press Ctrl-C, once, in the middle of a step."""
    whole = Trainer.take_step

    def press_at(step: int) -> None:
        def take_step(self: Trainer, number: int) -> torch.Tensor:
            loss = whole(self, number)
            if number == step:
                os.kill(os.getpid(), signal.SIGINT)
            return loss

        monkeypatch.setattr(Trainer, "take_step", take_step)

    return press_at


def train(*arguments: str) -> int:
    return cli.run(["train", "tiny", "--device", "cpu", *arguments])


def weights(directory: str) -> dict[str, torch.Tensor]:
    return load_file(Path(directory) / "weights.safetensors")


def card(directory: str) -> dict[str, object]:
    return json.loads((Path(directory) / "card.json").read_text())


def assert_equal_weights(one: str, other: str) -> None:
    expected = weights(other)
    assert set(weights(one)) == set(expected)
    assert all(torch.equal(v, expected[k]) for k, v in weights(one).items())


def test_training_leaves_a_run_that_says_where_it_came_from(
    here: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--seed", "3", "--data", "flights") == 0
    assert "trained: runs/tiny-3" in capsys.readouterr().out
    assert here == [
        {
            "dataset": "nanobench",
            "split": "standard",
            "decimate_by": 4,
            "root": Path("flights"),
            "truth": "published",
        }
    ]
    run = load("runs/tiny-3")
    assert run.card.network == SMALL
    assert run.card.representation is TINY.representation
    assert run.card.rate_hz == 25.0
    provenance = run.card.provenance
    assert provenance["steps"] == 18
    assert provenance["split_sha256"] == "0123abcd"
    assert provenance["config"]["seed"] == 3
    assert provenance["config"]["network"]["window"] == 8
    assert provenance["versions"]["torch"] == torch.__version__
    assert provenance["validation"]["velocity_rmse"] > 0
    assert run.card.covariance_factor > 0
    assert run.card.covariance_factor != 1
    assert {"data", "split", "commit", "licence"} <= set(provenance)
    log = [json.loads(line) for line in Path("runs/tiny-3/log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log if line["val_rmse"] is not None] == [6, 12, 18]


def test_what_is_kept_are_the_averaged_weights() -> None:
    assert train() == 0
    state = load_file("runs/tiny-0/state.safetensors")
    kept = weights("runs/tiny-0")
    assert all(torch.equal(v, state[f"average.{k}"]) for k, v in kept.items())
    assert not all(torch.equal(v, state[f"network.{k}"]) for k, v in kept.items())


@pytest.mark.parametrize("step", [1, 6, 10])
def test_ctrl_c_saves_and_the_next_call_goes_on_as_if_nothing_had_been(
    step: int, stop_at: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    stop_at(step)
    assert train("--out", "broken") == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert "stopped and saved: broken" in capsys.readouterr().out
    stopped = card("broken")["provenance"]
    assert isinstance(stopped, dict)
    assert step <= stopped["steps"] < 18
    load("broken")
    stop_at(NEVER)
    assert train("--out", "broken") == 0
    assert f"going on from step {stopped['steps']} in broken" in capsys.readouterr().out
    assert train("--out", "unbroken") == 0
    assert "going on" not in capsys.readouterr().out
    assert_equal_weights("broken", "unbroken")
    assert card("broken")["provenance"] == card("unbroken")["provenance"]


def test_an_interrupted_run_has_other_weights(stop_at: Callable[[int], None]) -> None:
    """What the test above compares can differ."""
    stop_at(1)
    assert train("--out", "broken") == 130
    assert train("--out", "unbroken") == 130
    assert_equal_weights("broken", "unbroken")
    stop_at(NEVER)
    assert train("--out", "unbroken") == 0
    assert not all(torch.equal(v, weights("broken")[k]) for k, v in weights("unbroken").items())


def test_a_finished_run_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert train() == 0
    first = Path("runs/tiny-0/weights.safetensors").read_bytes()
    assert train() == 0
    assert "going on from step 18" in capsys.readouterr().out
    assert Path("runs/tiny-0/weights.safetensors").read_bytes() == first


def test_ctrl_c_while_data_is_read_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> Source:
        raise KeyboardInterrupt

    monkeypatch.setattr(train_command, "open_source", interrupt)
    assert train() == 130
    assert "interrupted" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_run_that_diverges_is_one_line_and_gives_ctrl_c_back(
    source: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    whole = source.corpora["train"]
    broken = replace(whole, v_w=torch.full_like(whole.v_w, torch.nan))
    bad = replace(source, corpora={**source.corpora, "train": broken})
    monkeypatch.setattr(train_command, "open_source", lambda *_args, **_how: bad)
    assert train("--out", "[bad] run") == 2
    message = capsys.readouterr().err
    assert "loss is nan at step 1; the batch is in [bad] run/bad-batch.safetensors" in message
    assert "Traceback" not in message
    assert signal.getsignal(signal.SIGINT) is before


def test_an_unknown_run_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["train", "huge"]) == 2
    assert "no run 'huge'; expected one of tiny, other" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_every_named_run_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_command, "RUNS", RUNS)
    for name in RUNS:
        command = train_command.Train(preset=name, seed=7, steps=8, device="cpu")
        config = command.config("cpu")
        assert (config.seed, config.steps, config.device) == (7, 8, "cpu")
        assert config.network == RUNS[name].network


def test_fewer_steps_keep_the_part_with_mse() -> None:
    assert train("--steps", "6") == 0
    config = card("runs/tiny-0")["provenance"]["config"]  # type: ignore[index]
    assert (config["steps"], config["mse_steps"]) == (6, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "steps and batch must be positive; found 0"),
        (["--device", "abacus"], "device 'abacus' cannot be used: Expected one of cpu, cuda, "),
    ],
)
def test_a_wrong_value_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(*arguments) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("--step", "--steps"), ("--sed", "--seed"), ("--output", "--out"), ("--dataa", "--data")],
)
def test_a_wrong_option_is_refused_with_the_right_one(
    wrong: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        train(wrong, "3")
    assert stop.value.code == 2
    assert right in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_run_without_a_name_is_asked_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.run(["train"])
    assert stop.value.code == 2
    assert "PRESET" in capsys.readouterr().err.upper()
