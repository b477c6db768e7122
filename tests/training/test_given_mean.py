"""Fitting Σ alone: the mean is the given one, to the last bit, whatever head is beside it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_run import SMALL, make_trainer
from torch import nn

from ginio.core import Quantity
from ginio.data.corpus import Corpus
from ginio.data.windows import WindowSet
from ginio.models import RecurrentConfig, ResNet1dConfig, TemporalConfig
from ginio.training.config import TrainConfig
from ginio.training.trainer import Trainer

HEADS = (replace(SMALL, covariance="diagonal"), replace(SMALL, covariance="spectral"))


@pytest.fixture
def mean(config: TrainConfig, corpus: Corpus, tmp_path: Path) -> nn.Module:
    trainer = make_trainer(replace(config, steps=5), corpus, tmp_path / "mean")
    list(trainer.run())
    return trainer.average


def fitted(
    network: TemporalConfig, given: nn.Module, config: TrainConfig, corpus: Corpus, directory: Path
) -> Trainer:
    config = replace(config, network=network, fitted="covariance", mse_steps=0)
    windows = WindowSet(corpus, network.window, Quantity.VELOCITY)
    return Trainer(config, windows, windows, directory, given=given)


def asked(network: nn.Module, corpus: Corpus) -> tuple[torch.Tensor, ...]:
    windows = WindowSet(corpus, SMALL.window, Quantity.VELOCITY)
    window = windows.windows(torch.arange(100, 140))
    with torch.no_grad():
        return network.eval()(
            window.represent(TrainConfig(network=SMALL).representation).features()
        )


def test_both_heads_keep_the_mean_and_learn_a_covariance(
    mean: nn.Module, config: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    expected, _, _ = asked(mean, corpus)
    for number, network in enumerate(HEADS):
        trainer = fitted(network, mean, config, corpus, tmp_path / str(number))
        before = {k: v.clone() for k, v in trainer.average.state_dict().items()}
        list(trainer.run())
        for trained in (trainer.network, trainer.average):
            assert torch.equal(asked(trained, corpus)[0], expected)
        after = trainer.average.state_dict()
        moved = {k.split(".")[0] for k, v in after.items() if not torch.equal(v, before[k])}
        expected_parts = {"covariance_vectors"}
        if network.covariance == "spectral":
            expected_parts.add("covariance")
        assert moved == expected_parts


def test_the_likelihood_gets_better(
    mean: nn.Module, config: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    config = replace(config, steps=60, learning_rate=5e-3)
    trainer = fitted(HEADS[1], mean, config, corpus, tmp_path / "fit")
    before = trainer.validate()
    list(trainer.run())
    after = trainer.validate()
    assert after.nll < before.nll - 0.1
    assert after.velocity_rmse == pytest.approx(before.velocity_rmse)


def test_a_broken_run_goes_on_as_if_nothing_had_been(
    mean: nn.Module, config: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    unbroken = fitted(HEADS[1], mean, config, corpus, tmp_path / "a")
    list(unbroken.run())
    first = fitted(HEADS[1], mean, config, corpus, tmp_path / "b")
    list(first.run(until=17))
    first.save()
    second = fitted(HEADS[1], mean, config, corpus, tmp_path / "b")
    assert second.resume()
    list(second.run())
    expected = unbroken.average.state_dict()
    assert all(torch.equal(v, expected[k]) for k, v in second.average.state_dict().items())


def test_what_does_not_fit_is_refused(
    mean: nn.Module, config: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    wide = replace(SMALL, head_hidden=20)
    with pytest.raises(ValueError, match="the given mean does not fit this network's mean"):
        fitted(wide, mean, config, corpus, tmp_path)
    with pytest.raises(ValueError, match="fitting 'covariance': found none"):
        make_trainer(replace(config, fitted="covariance"), corpus, tmp_path)
    resnet = ResNet1dConfig(window=32, groups=((8, 1),), head_narrow=4, head_hidden=8)
    config = replace(config, network=resnet, fitted="covariance")
    windows = WindowSet(corpus, 32, Quantity.VELOCITY)
    with pytest.raises(
        ValueError, match=r"expected parts named covariance\.\.\. to fit; found stem"
    ):
        Trainer(config, windows, windows, tmp_path, given=resnet.build())


def test_recurrent_networks_have_a_head_to_fit_too(
    config: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    network = RecurrentConfig(window=32, encoder=(4, 6), hidden=(4,), decoder=4)
    trainer = fitted(network, network.build(), config, corpus, tmp_path)  # type: ignore[arg-type]
    frozen = {n.split(".")[0] for n, p in trainer.network.named_parameters() if not p.requires_grad}
    assert frozen == {"encoder", "bracket", "recurrent", "mean"}
