"""The paper's numerical equivariance verification, for any network.

Each network is held to the symmetry its config declares, fresh and after a few training steps on
random data, in float32 and float64, over three kinds of rotations.
"""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.core.window import ACC_CHANNEL, IMU_CHANNELS, imu_channels
from ginio.geometry import frames, so3
from ginio.geometry.frames import GRAVITY_MPS2
from ginio.metrics.equivariance import LawErrors, law_errors

# Relative errors up to the first hold the law to rounding; above the second it is broken, since a
# network without it is wrong by about one. Between them the law is there but badly conditioned:
# some layer blows rounding up, as batch normalisation of lengths does.
HOLDS_BELOW = {torch.float32: 1e-3, torch.float64: 1e-10}
BROKEN_ABOVE = {torch.float32: 1e-1, torch.float64: 1e-6}
Verdict = Literal["holds", "ill-conditioned", "BROKEN", "not declared"]
VERTICAL = "about the vertical"
MIRRORS = "mirrors that keep the vertical"
# The kinds of rotations that a declared symmetry is about.
COVERS: dict[Symmetry, frozenset[str]] = {
    Symmetry.NONE: frozenset(),
    Symmetry.SO2: frozenset({VERTICAL}),
    Symmetry.O2: frozenset({VERTICAL, MIRRORS}),
    Symmetry.SO3: frozenset({"uniform", "near identity", "half turn", VERTICAL}),
}
TrainStep = Callable[[nn.Module, Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class VerificationConfig:
    """How much is tried."""

    windows: int = 16
    rotations: int = 10
    steps: int = 10
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """One law over all tried windows and rotations of one kind."""

    median: float
    max: float
    relative_median: float
    relative_max: float


@dataclass(frozen=True, slots=True)
class Check:
    """One network in one precision, at one stage, under one kind of rotations."""

    network: str
    dtype: str
    steps: int
    rotations: str
    mean: Summary
    covariance: Summary
    mean_verdict: Verdict
    covariance_verdict: Verdict

    @property
    def passed(self) -> bool:
        """Whether no declared symmetry is broken."""
        return "BROKEN" not in {self.mean_verdict, self.covariance_verdict}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "passed": self.passed}


def verify(
    name: str,
    network: nn.Module,
    symmetries: tuple[Symmetry, Symmetry],
    shape: tuple[int, int],
    loss: TrainStep,
    config: VerificationConfig,
) -> Iterator[Check]:
    """Check the mean and the covariance law of a network, one result at a time.

    ``shape`` is that of its windows: vector channels, samples.
    """
    for dtype in (torch.float32, torch.float64):
        generator = torch.Generator().manual_seed(config.seed)
        candidate = copy.deepcopy(network).to(dtype)
        for steps in (0, config.steps):
            if steps:
                random_training(candidate, shape, steps, loss, generator)
            candidate.eval()
            features = random_windows(config.windows, *shape, generator).to(dtype)
            features = features.repeat(config.rotations, 1, 1, 1)
            kinds = rotation_kinds(len(features), generator)
            if Symmetry.O2 in symmetries:
                kinds[MIRRORS] = mirrors(len(features), generator)
            for kind, R_ms in kinds.items():
                with torch.no_grad():
                    errors = law_errors(candidate, features, R_ms.to(dtype))
                yield _check(name, dtype, steps, kind, errors, symmetries)


def rotation_kinds(count: int, generator: torch.Generator) -> dict[str, Float[Tensor, "count 3 3"]]:
    """Rotations drawn uniformly, close to the identity, by half turns, and about the vertical."""
    double = torch.float64
    return {
        "uniform": so3.random(count, generator=generator, dtype=double),
        "near identity": so3.random_with_angle(count, 1e-3, generator=generator, dtype=double),
        "half turn": so3.random_with_angle(count, math.pi, generator=generator, dtype=double),
        VERTICAL: so3.about_z(2 * math.pi * torch.rand(count, generator=generator, dtype=double)),
    }


def mirrors(count: int, generator: torch.Generator) -> Float[Tensor, "count 3 3"]:
    """Reflections in vertical planes."""
    yaw = 2 * math.pi * torch.rand(count, generator=generator, dtype=torch.float64)
    return so3.about_z(yaw) @ torch.diag(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))


def random_windows(
    count: int, channels: int, length: int, generator: torch.Generator
) -> Float[Tensor, "count channel 3 length"]:
    """Windows with the size and smoothness of inertial data: gravity somewhere, and motion.

    Attitude, if the channels have it, is that of a body which turns steadily.
    """
    noise = torch.randn(count, channels, 3, length + 8, generator=generator, dtype=torch.float64)
    smooth = noise.unfold(-1, 9, 1).mean(-1) * 3
    up = torch.randn(count, 1, 3, 1, generator=generator, dtype=torch.float64)
    inertial = imu_channels(channels)
    force = smooth[:, ACC_CHANNEL:inertial:IMU_CHANNELS]
    force.mul_(2).add_(GRAVITY_MPS2 * up / up.norm(dim=2, keepdim=True))
    if inertial < channels:
        start = so3.random(count, generator=generator, dtype=torch.float64).unsqueeze(1)
        turn = torch.linspace(0, 1, length, dtype=torch.float64)[:, None] * up[:, 0].mT
        smooth[:, inertial:] = frames.attitude_vectors(start @ so3.exp(turn)).movedim(1, -1)
    return smooth


def random_training(
    network: nn.Module,
    shape: tuple[int, int],
    steps: int,
    loss: TrainStep,
    generator: torch.Generator,
) -> None:
    """Optimiser steps towards random targets, so that no weight is as it was initialised."""
    dtype = next(network.parameters()).dtype
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3)
    network.train()
    for _ in range(steps):
        features = random_windows(16, *shape, generator).to(dtype)
        target = torch.randn(16, 3, generator=generator, dtype=torch.float64).to(dtype)
        optimiser.zero_grad()
        loss(network, features, target).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()


def _check(
    name: str,
    dtype: torch.dtype,
    steps: int,
    kind: str,
    errors: LawErrors,
    symmetries: tuple[Symmetry, Symmetry],
) -> Check:
    mean = _summary(errors.mean, errors.mean_relative)
    covariance = _summary(errors.covariance, errors.covariance_relative)
    return Check(
        network=name,
        dtype=str(dtype).removeprefix("torch."),
        steps=steps,
        rotations=kind,
        mean=mean,
        covariance=covariance,
        mean_verdict=_verdict(mean, dtype, kind, symmetries[0]),
        covariance_verdict=_verdict(covariance, dtype, kind, symmetries[1]),
    )


def _summary(absolute: Float[Tensor, " case"], relative: Float[Tensor, " case"]) -> Summary:
    return Summary(
        float(absolute.median()),
        float(absolute.max()),
        float(relative.median()),
        float(relative.max()),
    )


def _verdict(summary: Summary, dtype: torch.dtype, kind: str, declared: Symmetry) -> Verdict:
    if kind not in COVERS[declared]:
        return "not declared"
    if summary.relative_max <= HOLDS_BELOW[dtype]:
        return "holds"
    # A NaN compares false, and so counts as broken.
    return "ill-conditioned" if summary.relative_max <= BROKEN_ABOVE[dtype] else "BROKEN"
