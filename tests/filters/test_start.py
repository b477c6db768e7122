"""How a run begins (F20, F21): at rest it knows its level, in motion it does not pretend to."""

from dataclasses import replace

import pytest
import torch
from flights import F64, G_W, Flight, fly
from runs import Schedule, noisy_network, run
from strategies import rotations
from torch import Tensor

from ginio.core.measurement import Quantity
from ginio.filters.belief import Belief
from ginio.filters.inekf import InekfConfig
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.start import (
    RestLimits,
    StartStd,
    is_resting,
    start_at_rest,
    start_at_truth,
    start_moving,
)
from ginio.geometry import frames, so3

RUNS, RATE_HZ = 200, 200.0
DT = torch.full((400,), 1 / RATE_HZ, dtype=F64)


def resting(R_ws: Tensor, bias_acc: Tensor, bias_gyr: Tensor) -> tuple[Tensor, Tensor]:
    shape = (len(R_ws), 400, 3)
    up_s = so3.rotate(R_ws.mT, -G_W) + bias_acc
    acc_s = up_s.unsqueeze(1) + 0.03 * torch.randn(shape, dtype=F64)
    return acc_s, bias_gyr.unsqueeze(1) + 0.004 * torch.randn(shape, dtype=F64)


def tilt(R_ws: Tensor, R_other: Tensor) -> Tensor:
    """Angle between the verticals that two attitudes claim."""
    return torch.linalg.cross(R_ws[..., 2, :], R_other[..., 2, :]).norm(dim=-1)


def test_rest_gives_level_and_gyroscope_bias() -> None:
    R_ws = rotations(RUNS, F64)
    zero = torch.zeros(RUNS, 3, dtype=F64)
    acc_s, gyr_s = resting(R_ws, zero, zero + 0.01)
    assert is_resting(acc_s, gyr_s).all()
    start = start_at_rest(acc_s, gyr_s)
    assert tilt(start.state.R_ws, R_ws).max() < 1e-3
    assert (start.state.bias_gyr_s - 0.01).abs().max() < 1e-3
    heading = frames.yaw_rotation(start.state.R_ws)
    assert (heading - torch.eye(3, dtype=F64)).abs().max() < 1e-6


def test_f21_huge_biases_at_start() -> None:
    R_ws = rotations(RUNS, F64)
    side = torch.nn.functional.normalize(torch.randn(2, RUNS, 3, dtype=F64), dim=-1)
    acc_s, gyr_s = resting(R_ws, 2.0 * side[0], 0.2 * side[1])
    assert is_resting(acc_s, gyr_s).all()
    start = start_at_rest(acc_s, gyr_s)
    assert (start.state.bias_gyr_s - 0.2 * side[1]).norm(dim=-1).max() < 1e-3


def test_tilt_and_bias_err_together() -> None:
    """The covariance of a levelled start is that of levels with biases of its size."""
    R_ws = rotations(1, F64).expand(20_000, 3, 3)
    std = StartStd(bias_acc=0.1, tilt=1e-6)
    bias = 0.1 * torch.randn(20_000, 3, dtype=F64)
    mean = so3.rotate(R_ws.mT, -G_W) + bias
    start = start_at_rest(
        mean.unsqueeze(1).expand(-1, 2, 3), torch.zeros(20_000, 2, 3).double(), std
    )
    heading = frames.yaw_rotation(R_ws).mT
    theta = so3.local(start.state.R_ws, heading @ R_ws)
    # Heading is free: what of θ lies along the vertical is no error of the level.
    up_s = start.state.R_ws[:, 2, :]
    theta = theta - (theta * up_s).sum(-1, keepdim=True) * up_s
    error = torch.cat((theta, bias), -1)
    found = error.mT @ error / len(error)
    block = torch.cat((torch.arange(3), torch.arange(9, 12)))
    P = start.covariance.mean(0)[block][:, block]
    scale = P.diagonal().clamp(min=1e-4**2).sqrt()
    assert ((found - P) / scale / scale[:, None]).abs().max() < 0.05


def test_f20_no_false_static_start() -> None:
    flight = fly(RUNS, 2.0, RATE_HZ, lively=2.0)
    assert not is_resting(flight.acc_s, flight.gyr_s).any()


def test_f20_a_moving_start_is_as_uncertain_as_it_errs() -> None:
    flight = fly(RUNS, 2.0, RATE_HZ, lively=2.0)
    start = start_moving(flight.acc_s, flight.gyr_s, flight.dt)
    error = tilt(start.state.R_ws, flight.R_ws[:, -1])
    up_s = start.state.R_ws[:, 2, :]
    P = start.covariance[:, :3, :3]
    level = (
        P.diagonal(dim1=-2, dim2=-1).sum(-1)
        - (up_s.unsqueeze(-2) @ P @ up_s.unsqueeze(-1)).flatten()
    )
    inside = error <= 2.45 * (level / 2).sqrt()
    assert inside.double().mean() >= 0.95
    assert (start.covariance[:, 3:6, 3:6].diagonal(dim1=-2, dim2=-1) >= 1).all()
    belief = ScekfConfig(clones=1).build().start(start)
    assert torch.isfinite(belief.P).all()


def later(flight: Flight, begin: int) -> Flight:
    """The same flight from a sample on."""
    signals = (flight.dt, flight.acc_s.mT, flight.gyr_s.mT)
    dt, acc, gyr = (x[..., begin:] for x in signals)
    rest = (x[:, begin:] for x in (flight.R_ws, flight.v_w, flight.p_w))
    return Flight(dt, acc.mT, gyr.mT, *rest)


@pytest.mark.parametrize("config", [ScekfConfig(clones=21), InekfConfig(clones=21)])
def test_f20_a_moving_start_is_initialising_until_it_knows_its_level(
    config: ScekfConfig | InekfConfig,
) -> None:
    """And has an honest level from then on: it never says too early that it is settled."""
    flight = fly(24, 22.0, 100.0, lively=2.0)
    begin = 200
    start = start_moving(flight.acc_s[:, :begin], flight.gyr_s[:, :begin], flight.dt[:begin])
    rest, filter_ = later(flight, begin), config.build()
    settled, errors = [], []

    def after(k: int, belief: Belief, _: object) -> None:
        settled.append(belief.health.is_settled)
        errors.append(tilt(belief.state.R_ws, rest.R_ws[:, k]))

    schedule = Schedule(every=5, span=20, quantity=Quantity.VELOCITY, frame=Frame.LAST)
    first = filter_.start(start)
    run(filter_, first, rest, schedule, noisy_network(0.05, Quantity.VELOCITY), after=after)
    assert first.health.is_initialising.all()
    assert settled[-1].all()
    is_settled, error = torch.stack(settled), torch.stack(errors)
    assert float(error[is_settled].max()) < 3 * config.settled_tilt
    assert not bool((is_settled[:-1] & ~is_settled[1:]).any())


def test_f20_a_start_at_rest_is_settled_at_once() -> None:
    R_ws = rotations(RUNS, F64)
    zero = torch.zeros(RUNS, 3, dtype=F64)
    belief = InekfConfig(clones=0).build().start(start_at_rest(*resting(R_ws, zero, zero)))
    assert not belief.health.is_initialising.any()
    assert not belief.has_large_bias.any()


def test_f21_what_gravity_shows_of_a_huge_bias_is_flagged_at_once() -> None:
    """The part along the vertical; what lies across it looks like a tilt."""
    R_ws = rotations(RUNS, F64)
    up_s = R_ws[:, 2, :]
    acc_s, gyr_s = resting(R_ws, 2.0 * up_s, 0.2 * up_s)
    start = start_at_rest(acc_s, gyr_s)
    assert (start.state.bias_acc_s - 2.0 * up_s).norm(dim=-1).max() < 0.02
    assert InekfConfig(clones=0).build().start(start).has_large_bias.all()


@pytest.mark.parametrize("config", [ScekfConfig(clones=21), InekfConfig(clones=21)])
def test_f21_a_bias_beyond_the_limit_is_flagged_in_flight(
    config: ScekfConfig | InekfConfig,
) -> None:
    """0.8 m/s² across the vertical or not, flagged within ten seconds; 0.1 m/s² never."""
    flight = fly(12, 15.0, 100.0)
    state = (flight.R_ws[:, 0], flight.v_w[:, 0], flight.p_w[:, 0])
    side = torch.nn.functional.normalize(torch.randn(12, 1, 3, dtype=F64), dim=-1)
    schedule = Schedule(every=5, span=20, quantity=Quantity.VELOCITY, frame=Frame.LAST)
    network = noisy_network(0.03, Quantity.VELOCITY)
    for size, expected in ((0.8, True), (0.1, False)):
        samples = replace(flight, acc_s=flight.acc_s + size * side)
        filter_, flagged = config.build(), []

        def after(_k: int, belief: Belief, _i: object, flagged: list[Tensor] = flagged) -> None:
            flagged.append(belief.has_large_bias)

        start = filter_.start(start_at_truth(*state))
        run(filter_, start, flight, schedule, network, after=after, samples=samples)
        late = torch.stack(flagged)[200:]
        assert bool(late.all()) if expected else not bool(torch.stack(flagged).any())


@pytest.mark.parametrize("fault", ["turning", "shaking", "drifting", "falling"])
def test_rest_is_refused(fault: str) -> None:
    R_ws = rotations(4, F64)
    zero = torch.zeros(4, 3, dtype=F64)
    acc_s, gyr_s = resting(R_ws, zero, zero)
    t = torch.linspace(0, 2, 400, dtype=F64).unsqueeze(-1)
    match fault:
        case "turning":
            gyr_s = gyr_s + RestLimits().gyr_mean
        case "shaking":
            acc_s = acc_s + torch.sin(60 * t)
        case "drifting":
            gyr_s = gyr_s + 0.01 * t
        case "falling":
            acc_s = 0.3 * acc_s
    assert not is_resting(acc_s, gyr_s).any()


def test_what_cannot_be_a_standard_deviation_is_refused() -> None:
    with pytest.raises(ValueError, match="tilt must be finite and not negative; found -1"):
        StartStd(tilt=-1.0)
