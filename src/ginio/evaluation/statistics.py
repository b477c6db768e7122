"""Means with intervals, and paired comparisons, over recordings."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over recordings with its bootstrap 95 % interval, and the median."""

    mean: float
    low: float
    high: float
    median: float


def bootstrap(values: Float[Tensor, " recording"], *, seed: int = 0) -> Interval:
    """Percentile bootstrap of the mean over recordings."""
    values = values.double()
    generator = torch.Generator().manual_seed(seed)
    draw = torch.randint(len(values), (RESAMPLES, len(values)), generator=generator)
    means = values[draw].mean(1)
    low, high = torch.quantile(means, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return Interval(float(values.mean()), low, high, float(values.median()))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean difference of two runs on the same recordings, and how surprising it would be."""

    difference: Interval
    p_value: float


def compare(
    values: Float[Tensor, " recording"], other: Float[Tensor, " recording"], *, seed: int = 0
) -> Comparison:
    """Paired comparison: bootstrap of the difference, and a two-sided sign-flip test."""
    difference = (values - other).double()
    generator = torch.Generator().manual_seed(seed)
    signs = 2 * torch.randint(2, (RESAMPLES, len(difference)), generator=generator).double() - 1
    null = (signs * difference).mean(1).abs()
    # Not ">=": a difference that is NaN must not pass for a surprising one.
    extreme = int((~(null < difference.mean().abs() * (1 - 1e-12))).sum())
    return Comparison(bootstrap(difference, seed=seed), (extreme + 1) / (RESAMPLES + 1))
