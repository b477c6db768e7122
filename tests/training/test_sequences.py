"""Learning from every output of a recurrent network, each with the motion it is to tell."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_run import SMALL, make_trainer
from strategies import assert_near

from ginio.core import Quantity, Representation
from ginio.core.interfaces import SequenceNetwork
from ginio.data.augment import AugmentConfig, mirror, turn
from ginio.data.corpus import Corpus
from ginio.data.windows import WindowSet, target_f, targets_s
from ginio.geometry import so3
from ginio.models import AirIoConfig, RecurrentConfig
from ginio.training.config import TrainConfig
from ginio.training.trainer import Trainer

AIRIO = AirIoConfig(window=64)
BOTH_WAYS = RecurrentConfig(window=64, encoder=(4, 6), hidden=(4,), decoder=4)
CAUSAL = replace(BOTH_WAYS, is_causal=True, covariance="spectral")
NETWORKS = (AIRIO, BOTH_WAYS, CAUSAL)


@pytest.fixture
def sequences(config: TrainConfig) -> TrainConfig:
    return replace(
        config, network=BOTH_WAYS, representation=Representation.BODY, is_sequence=True, steps=30
    )


@pytest.mark.parametrize("network", NETWORKS)
def test_one_output_a_label_and_the_answer_of_the_window_is_among_them(
    network: AirIoConfig | RecurrentConfig,
) -> None:
    """What is learnt from sequences is what a window is asked for."""
    made = network.build().eval()
    assert isinstance(made, SequenceNetwork)
    features = torch.randn(3, 2, 3, 64)
    mean, axes, log_std, penalty = made.regularised_sequence(features)
    assert mean.shape == log_std.shape == (3, len(made.labels), 3)
    assert axes.shape == (3, len(made.labels), 3, 3)
    assert penalty.shape == (3,)
    at_end = made.labels.index(63)
    expected = made(features)
    assert_near(mean[:, at_end], expected[0], 1e-6)
    assert_near(log_std[:, at_end], expected[2], 1e-6)


def test_labels_are_as_airio_has_them() -> None:
    labels = AirIoConfig(window=1000).build().labels
    assert labels[:2] == (14, 23)
    assert len(labels) == 112
    assert labels[-2:] == (999, 999)
    assert CAUSAL.build().labels == (9, 18, 27, 36, 45, 54, 63)


def test_each_label_has_the_velocity_of_its_own_time_in_its_own_frame(corpus: Corpus) -> None:
    windows = WindowSet(corpus, 64, Quantity.VELOCITY)
    last, labels = torch.tensor([100, 250]), (14, 40, 63)
    felt, motion_w = windows.windows(last), windows.motions_w(last, labels)
    found = targets_s(felt, motion_w, labels)
    for row, end in enumerate(last.tolist()):
        for column, label in enumerate(labels):
            sample = end - 63 + label
            expected = corpus.R_ws[sample].mT @ corpus.v_w[sample]
            assert_near(found[row, column], expected, 1e-6)
    at_end = target_f(felt.represent(Representation.BODY), windows.motion_w(last))
    assert_near(found[:, -1], at_end, 1e-6)


def test_mirrors_and_turns_act_on_every_motion_alike(corpus: Corpus) -> None:
    windows = WindowSet(corpus, 32, Quantity.VELOCITY)
    last = torch.arange(100, 120)
    one, several = windows.motion_w(last), windows.motions_w(last, (3, 31))
    felt = windows.windows(last)
    alone, _ = mirror(felt, one, torch.Generator().manual_seed(1))
    again, mirrored = mirror(felt, several, torch.Generator().manual_seed(1))
    assert torch.equal(alone.acc_s, again.acc_s)
    assert_near(mirrored[:, 1], mirror(felt, one, torch.Generator().manual_seed(1))[1], 1e-7)
    window = felt.represent(Representation.BODY)
    turned, v = turn(window, several, "so3", torch.Generator().manual_seed(2))
    R = turned.acc_f[:, :3].mT @ torch.linalg.inv(window.acc_f[:, :3].mT)
    assert_near(v, so3.rotate(R.unsqueeze(1), several), 1e-2)


@pytest.mark.parametrize("network", NETWORKS)
def test_recurrent_networks_learn_from_sequences(
    network: AirIoConfig | RecurrentConfig, sequences: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    augment = AugmentConfig(turn="so3", is_mirrored=True, tilt_deg=1.0)
    config = replace(sequences, network=network, augment=augment, mse_steps=30, learning_rate=5e-3)
    trainer = make_trainer(config, corpus, tmp_path)
    features, target = trainer.batch(1)
    assert isinstance(trainer.network, SequenceNetwork)
    assert target.shape == (len(features), len(trainer.network.labels), 3)
    losses = [float(trainer.take_step(step)) for step in range(1, 31)]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_sequences_are_another_training(
    sequences: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    weights = []
    for number, is_sequence in enumerate((True, False)):
        config = replace(sequences, is_sequence=is_sequence, steps=2)
        trainer = make_trainer(config, corpus, tmp_path / str(number))
        list(trainer.run())
        weights.append(torch.cat([p.flatten() for p in trainer.network.parameters()]))
    assert not torch.equal(*weights)


def test_what_has_no_sequence_is_refused(
    sequences: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="recurrent networks; found TemporalNetwork"):
        make_trainer(replace(sequences, network=SMALL), corpus, tmp_path)
    with pytest.raises(ValueError, match="found velocity in 'last'"):
        replace(sequences, representation=Representation.LAST)
    with pytest.raises(ValueError, match="found displacement in 'body'"):
        replace(sequences, quantity=Quantity.DISPLACEMENT)


def test_a_trainer_is_what_it_was_without_sequences(
    config: TrainConfig, corpus: Corpus, tmp_path: Path
) -> None:
    trainer: Trainer = make_trainer(config, corpus, tmp_path)
    features, target = trainer.batch(3)
    assert target.shape == (len(features), 3)
