import json
import math
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_run import make_trainer
from torch import multiprocessing

from ginio.data.augment import AugmentConfig
from ginio.data.corpus import Corpus
from ginio.models import ResNet1dConfig
from ginio.training import processes
from ginio.training.config import TrainConfig
from ginio.training.trainer import DivergedError, Trainer


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return trainer.network.state_dict() | {
        f"average.{k}": v for k, v in trainer.average.state_dict().items()
    }


def train(trainer: Trainer, until: int | None = None) -> list[float]:
    return [line.loss for line in trainer.run(until=until)]


@pytest.mark.parametrize("augmented", [False, True])
def test_a_resumed_run_is_the_unbroken_one_bit_for_bit(
    tmp_path: Path, config: TrainConfig, corpus: Corpus, augmented: bool
) -> None:
    if augmented:
        augment = AugmentConfig(turn="so3", bias_acc_mps2=0.1, noise_gyr_radps=0.1, tilt_deg=1.0)
        config = replace(config, augment=augment)
    unbroken = make_trainer(config, corpus, tmp_path / "a")
    train(unbroken)
    first = make_trainer(config, corpus, tmp_path / "b")
    train(first, until=23)
    first.save()
    torch.rand(7)
    second = make_trainer(config, corpus, tmp_path / "b")
    assert second.resume()
    assert second.step == 23
    train(second)
    expected = weights(unbroken)
    assert all(torch.equal(v, expected[k]) for k, v in weights(second).items())


def test_nothing_to_resume_is_said(tmp_path: Path, config: TrainConfig, corpus: Corpus) -> None:
    assert not make_trainer(config, corpus, tmp_path).resume()


def test_seeds_decide_the_run(tmp_path: Path, config: TrainConfig, corpus: Corpus) -> None:
    runs = []
    for seed in (1, 1, 2):
        trainer = make_trainer(replace(config, seed=seed, steps=3), corpus, tmp_path / str(seed))
        train(trainer)
        runs.append(weights(trainer))
    assert all(torch.equal(v, runs[1][k]) for k, v in runs[0].items())
    assert not all(torch.equal(v, runs[2][k]) for k, v in runs[0].items())


def test_training_learns_and_logs(tmp_path: Path, config: TrainConfig, corpus: Corpus) -> None:
    trainer = make_trainer(
        replace(config, steps=300, mse_steps=200, batch=64, learning_rate=5e-3), corpus, tmp_path
    )
    before = trainer.validate().velocity_rmse
    train(trainer)
    after = trainer.validate()
    assert after.velocity_rmse < 0.5 * before
    assert after.nll < 0
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert log[-1]["step"] == 300
    assert log[-1]["val_rmse"] == after.velocity_rmse


def test_a_loss_that_is_not_finite_stops_and_keeps_the_batch(
    tmp_path: Path, config: TrainConfig, corpus: Corpus
) -> None:
    broken = replace(corpus, v_w=torch.full_like(corpus.v_w, torch.nan))
    trainer = make_trainer(config, broken, tmp_path)
    before = weights(trainer)
    before = {k: v.clone() for k, v in before.items()}
    with pytest.raises(DivergedError, match="loss is nan at step 1; the batch is in"):
        train(trainer)
    batch = load_file(tmp_path / "bad-batch.safetensors")
    assert batch["features"].shape == (16, 2, 3, 32)
    assert all(torch.equal(v, before[k]) for k, v in weights(trainer).items())


def test_learning_rate_warms_up_and_ends_at_nothing(
    tmp_path: Path, config: TrainConfig, corpus: Corpus
) -> None:
    trainer = make_trainer(replace(config, steps=1000, warm_up_steps=100), corpus, tmp_path)
    rates = [trainer.learning_rate(step) for step in (1, 50, 100, 500, 1000)]
    assert rates[0] < rates[1] < rates[2]
    assert rates[2] > rates[3] > rates[4]
    assert rates[4] == pytest.approx(0, abs=1e-12)


def test_a_half_written_state_is_never_seen(
    tmp_path: Path, config: TrainConfig, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(config, corpus, tmp_path)
    train(trainer, until=2)
    trainer.save()
    whole = (tmp_path / "state.safetensors").read_bytes()
    train(trainer, until=3)

    def power_cut(_tensors: object, path: Path, **_: object) -> None:
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("ginio.training.trainer.save_file", power_cut)
    with pytest.raises(OSError, match="no space left"):
        trainer.save()
    assert (tmp_path / "state.safetensors").read_bytes() == whole


def test_a_network_without_symmetry_trains_too(
    tmp_path: Path, config: TrainConfig, corpus: Corpus
) -> None:
    network = ResNet1dConfig(window=32, groups=((8, 1),), head_narrow=4, head_hidden=8)
    trainer = make_trainer(replace(config, network=network), corpus, tmp_path)
    assert all(math.isfinite(loss) for loss in train(trainer))


def one_process_of_two(
    rank: int, port: int, config: TrainConfig, corpus: Corpus, directory: Path
) -> None:
    torch.set_num_threads(1)
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
    }
    with processes.joined("cpu"):
        losses = curve(make_trainer(config, corpus, directory / str(rank)))
        (directory / f"losses-{rank}.json").write_text(json.dumps(losses))


def curve(trainer: Trainer) -> list[float]:
    return [float(trainer.take_step(step)) for step in range(1, trainer.config.steps + 1)]


def test_two_processes_train_as_one(tmp_path: Path, config: TrainConfig, corpus: Corpus) -> None:
    config = replace(config, network=replace(config.network, dropout=0.0))
    alone = curve(make_trainer(config, corpus, tmp_path / "alone"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(one_process_of_two, (port, config, corpus, tmp_path), nprocs=2)
    for rank in "01":
        together = json.loads((tmp_path / f"losses-{rank}.json").read_text())
        assert together == pytest.approx(alone, rel=1e-5, abs=1e-5)
    other_seed = curve(make_trainer(replace(config, seed=1), corpus, tmp_path / "other"))
    assert other_seed != pytest.approx(alone, rel=1e-2)
