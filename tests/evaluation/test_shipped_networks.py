"""What the shipped networks are worth on flights that nobody has seen."""

from functools import cache

import pytest
import torch

import ginio
from ginio.data import synthetic
from ginio.data.corpus import Corpus, decimate
from ginio.data.synthetic import QuadrotorConfig
from ginio.data.windows import WindowSet
from ginio.evaluation.frame_errors import Course, SweepConfig, sweep
from ginio.evaluation.protocols import ProtocolConfig, evaluate, trivial_baselines
from ginio.evaluation.unseen import UNSEEN_SEED

GINIO, RESNET = "ginio-rs-synthetic", "resnet1d-synthetic"
STRIDE = 10


@cache
def corpus() -> Corpus:
    return Corpus.join(decimate(synthetic.fly(QuadrotorConfig(), 6, seed=UNSEEN_SEED), 4))


def windows(name: str) -> WindowSet:
    card = ginio.load(name).card
    return WindowSet(corpus(), card.network.window, card.quantity)


@cache
def mean_ate(name: str, test: str) -> float:
    config = ProtocolConfig(tests=("ID/ID", "ID/SO(3) remount"), rotations=2, stride=STRIDE)
    if name == "standing still":
        scores = trivial_baselines(corpus(), config)[name]
    else:
        run = ginio.load(name)
        scores = list(evaluate(run.frontend(), run.card.representation, windows(name), config))
    found = [s.metrics["ate_se3"] for s in scores if s.test == test]
    return sum(found) / len(found)


def test_both_are_better_than_standing_still_as_recorded() -> None:
    still = mean_ate("standing still", "ID/ID")
    assert mean_ate(GINIO, "ID/ID") < 0.7 * still
    assert mean_ate(RESNET, "ID/ID") < 0.7 * still


def test_only_the_equivariant_one_is_after_a_remount() -> None:
    remount = "ID/SO(3) remount"
    assert mean_ate(GINIO, remount) == pytest.approx(mean_ate(GINIO, "ID/ID"), abs=1e-3)
    assert mean_ate(RESNET, remount) > mean_ate("standing still", remount)


def swept(course: Course, angle_deg: float) -> float:
    run = ginio.load(GINIO)
    config = SweepConfig(
        kinds=("relative",), courses=(course,), angles_deg=(angle_deg,), draws=1, stride=STRIDE
    )
    scores = sweep(run.frontend(), run.card.representation, windows(GINIO), config)
    return float(torch.tensor([s.metrics["ate_se3"] for s in scores]).mean())


def test_f31_relative_rotations_that_drift_by_20_degrees_cost_little() -> None:
    assert swept("varying", 20.0) < 1.25 * mean_ate(GINIO, "ID/ID")


def test_f31_a_constant_relative_error_costs_more_the_larger_it_is() -> None:
    own = mean_ate(GINIO, "ID/ID")
    errors = [swept("constant", angle) for angle in (3.0, 10.0, 20.0)]
    assert errors == sorted(errors)
    assert errors[0] < 1.25 * own
    assert errors[2] > 2 * own
