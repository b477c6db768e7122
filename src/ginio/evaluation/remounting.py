"""The protocol of a remounted sensor: recorded flights as another mounting would have made them.

Conditions: ``nominal`` is the flight as recorded. ``same`` is taken off and put on again the same
way. In the paper's test cases gravity's reaction, which a flat sensor feels along +z, lies along -x
(``TC1``) and +y (``TC2``). ``random`` is uniform on SO(3). All but the first change what
`ginio.data.remounting.RemountConfig` says, drawn for each flight and condition, and alike for every
network.

Real recordings of several mountings are scored by `folder_scores`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ginio.core.interfaces import Frontend
from ginio.core.measurement import Quantity
from ginio.core.recording import Recording
from ginio.core.window import Representation
from ginio.data.corpus import Corpus, decimate
from ginio.data.readers import nanobench
from ginio.data.remounting import RemountConfig, mounting_rotation, remount
from ginio.data.table import DataError
from ginio.data.windows import AttitudeSource, WindowSet
from ginio.evaluation.odometry import Question, run_odometry
from ginio.evaluation.protocols import (
    STANDING_STILL,
    STRAPDOWN,
    Score,
    path_errors,
    trivial_errors,
    uncertainty_errors,
)
from ginio.evaluation.remount import Mounting
from ginio.geometry import so3

NOMINAL, SAME, TC1, TC2, RANDOM = "nominal", "same", "TC1", "TC2", "random"
CONDITIONS = (NOMINAL, SAME, TC1, TC2, RANDOM)
UNSEEN = (TC1, TC2)
"""The mountings of the paper's unseen mean."""


@dataclass(frozen=True, kw_only=True)
class RemountingConfig:
    """What is changed, and how it is scored."""

    changes: RemountConfig = field(default_factory=RemountConfig)
    seed: int = 0
    stride: int = 2
    """Samples between the ends of neighbouring windows."""
    attitude: AttitudeSource = AttitudeSource.TRUTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A network with what it needs to be asked, at the rate of its windows."""

    frontend: Frontend
    representation: Representation
    window: int
    decimate_by: int
    device: str = "cpu"


def mountings(recording: int, seed: int) -> tuple[Mounting, ...]:
    """Every mounting that is not the recorded one; the last is random, of its own for each."""
    generator = torch.Generator().manual_seed((seed << 16) + recording)
    x_down, y_up = torch.tensor([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    random = so3.random(1, generator=generator)[0]
    return (
        Mounting(SAME, "taken off and put on again the same way", torch.eye(3)),
        Mounting(TC1, "gravity's reaction along -x", mounting_rotation(x_down)),
        Mounting(TC2, "gravity's reaction along +y", mounting_rotation(y_up)),
        Mounting(RANDOM, "any direction", random),
    )


def conditions(
    flight: Recording, number: int, config: RemountingConfig
) -> Iterator[tuple[str, Recording]]:
    """A flight under every condition; the number decides what is random."""
    yield NOMINAL, flight
    for place, mounting in enumerate(mountings(number, config.seed)):
        rng = np.random.default_rng((config.seed, number, place))
        yield mounting.name, remount(flight, mounting.R_ms, config.changes, rng)


def remounting_scores(
    device: Device, flights: Sequence[Recording], config: RemountingConfig
) -> Iterator[Score]:
    """Score a network on flights at their recorded rate, under every condition."""
    for number, flight in enumerate(flights):
        for condition, recording in conditions(flight, number, config):
            yield score(device, recording, condition, config)


def trivial_scores(
    flights: Sequence[Recording], decimate_by: int, config: RemountingConfig
) -> dict[str, list[Score]]:
    """Standing still and strapdown, under every condition."""
    found: dict[str, list[Score]] = {STANDING_STILL: [], STRAPDOWN: []}
    for number, flight in enumerate(flights):
        for condition, recording in conditions(flight, number, config):
            corpus = Corpus.join(decimate([recording], decimate_by))
            for label, metrics in trivial_errors(corpus, 0, config.stride).items():
                metrics["normalised_ate"] = normalised_ate(metrics["ate_se3"], corpus.p_w)
                found[label].append(Score(flight.name, condition, config.attitude.value, metrics))
    return found


def score(device: Device, recording: Recording, condition: str, config: RemountingConfig) -> Score:
    """One recording under one condition."""
    corpus = Corpus.join(decimate([recording], device.decimate_by))
    windows = WindowSet(corpus.to(device.device), device.window, Quantity.VELOCITY, config.attitude)
    last = torch.arange(0, len(corpus), config.stride)
    question = Question(windows=windows, last=last)
    odometry = run_odometry(device.frontend, question, device.representation)
    metrics = path_errors(corpus, last, odometry)
    metrics |= uncertainty_errors(corpus.v_w[last], odometry.measurement)
    metrics["normalised_ate"] = normalised_ate(metrics["ate_se3"], corpus.p_w)
    return Score(recording.name, condition, config.attitude.value, metrics)


def folder_scores(
    device: Device, folders: Mapping[str, Path], config: RemountingConfig
) -> Iterator[Score]:
    """Score a network on real recordings, one folder for each mounting, as NanoBench has them."""
    for condition, root in folders.items():
        found = [recording for _, recording in nanobench.scan(root) if recording is not None]
        if not found:
            raise DataError(root, "no flight long enough to use; expected at least one")
        for recording in found:
            yield score(device, recording, condition, config)


def normalised_ate(ate: float, p_true_w: Float[Tensor, "time 3"]) -> float:
    """The absolute error in percent of the true path's length."""
    return 100 * ate / float(p_true_w.double().diff(dim=0).norm(dim=-1).sum())
