"""A filter on a flight, with measurements made from the truth."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from flights import Flight, measure
from torch import Tensor

from ginio.core.measurement import Measurement, Quantity
from ginio.filters.belief import Belief
from ginio.filters.cloning import CloningFilter
from ginio.filters.gaussian import Innovation
from ginio.filters.observation import Frame
from ginio.geometry import frames, so3

Network = Callable[[int, Tensor], Measurement | None]


@dataclass(frozen=True)
class Schedule:
    """Samples between corrections, clones between the ends of a window, and what is measured."""

    every: int = 5
    span: int = 20
    quantity: Quantity = Quantity.DISPLACEMENT
    frame: Frame = Frame.HEADING


def truth(flight: Flight, schedule: Schedule, k: int) -> Tensor:
    """What an exact network says at sample k, in the frame of the schedule."""
    first = k - schedule.span * schedule.every
    is_velocity = schedule.quantity is Quantity.VELOCITY
    x_w = flight.v_w[:, k] if is_velocity else flight.p_w[:, k] - flight.p_w[:, first]
    match schedule.frame:
        case Frame.WORLD:
            return x_w
        case Frame.LAST:
            return so3.rotate(flight.R_ws[:, k].mT, x_w)
        case Frame.HEADING:
            return so3.rotate(frames.yaw_rotation(flight.R_ws[:, first]).mT, x_w)


def exact(std: float, quantity: Quantity) -> Network:
    return lambda _, mean: measure(mean, std, quantity)


def noisy_network(std: float, quantity: Quantity) -> Network:
    """Independent errors of the size it says."""
    return lambda _, mean: measure(mean + std * torch.randn_like(mean), std, quantity)


def run(
    filter_: CloningFilter,
    belief: Belief,
    flight: Flight,
    schedule: Schedule,
    network: Network,
    *,
    after: Callable[[int, Belief, Innovation | None], None] = lambda *_: None,
    samples: Flight | None = None,
) -> Belief:
    """Propagate in chunks, clone, correct; ``after`` sees every correction."""
    samples = flight if samples is None else samples
    has_clones = filter_.config.clones > 0
    belief = filter_.clone(belief, 0) if has_clones else belief
    count = len(flight.dt)
    for end in range(schedule.every, count + 1, schedule.every):
        part = slice(end - schedule.every, end)
        belief = filter_.propagate(
            belief,
            samples.acc_s[:, part],
            samples.gyr_s[:, part],
            samples.dt[part],
            name=end if has_clones else None,
        )
        begin = end - schedule.span * schedule.every
        innovation = None
        if begin >= 0 and (said := network(end, truth(flight, schedule, end))) is not None:
            belief, innovation = filter_.update(
                belief, said, begin=begin, end=end, frame=schedule.frame
            )
        after(end, belief, innovation)
    return belief
