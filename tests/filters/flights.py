"""Motions whose samples are exact, and beliefs in awkward places.

Increments are made by the matrix exponential, so that the package is not checked against itself.
"""

import math
from dataclasses import dataclass

import torch
from strategies import near_half_turn, near_identity, scipy_matrices, uniform
from torch import Tensor

from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.filters.belief import Belief, Clones
from ginio.filters.cloning import CloningFilter
from ginio.filters.start import StartStd, start_at_truth
from ginio.filters.strapdown import ImuNoise, State
from ginio.geometry import so3

G_W = torch.tensor([0.0, 0.0, -9.80665], dtype=torch.float64)
F64 = torch.float64


@dataclass(frozen=True)
class Flight:
    """Truth at time + 1 instants, and the samples between them."""

    dt: Tensor
    acc_s: Tensor
    gyr_s: Tensor
    R_ws: Tensor
    v_w: Tensor
    p_w: Tensor

    def state(self, k: int, bias_acc_s: Tensor | None = None, bias_gyr_s=None) -> State:
        zero = torch.zeros_like(self.p_w[..., k, :])
        return State(
            self.R_ws[..., k, :, :],
            self.v_w[..., k, :],
            self.p_w[..., k, :],
            zero if bias_acc_s is None else bias_acc_s,
            zero if bias_gyr_s is None else bias_gyr_s,
        )


def exact_step(acc_s: Tensor, gyr_s: Tensor, dt: float) -> tuple[Tensor, Tensor, Tensor]:
    """Rotation, and first and second integral of a force fixed to a turning frame."""
    generator = torch.zeros(*acc_s.shape[:-1], 5, 5, dtype=F64)
    generator[..., :3, :3] = so3.hat(gyr_s)
    generator[..., :3, 3] = acc_s
    generator[..., 3, 4] = 1
    step = torch.linalg.matrix_exp(generator * dt)
    return step[..., :3, :3], step[..., :3, 3], step[..., :3, 4]


def fly(runs: int, seconds: float, rate_hz: float = 100.0, *, lively: float = 1.0) -> Flight:
    """Smooth motions of a few metres with a tumbling sensor; samples are constant in between."""
    count, dt = round(seconds * rate_hz), 1 / rate_hz
    t = (torch.arange(count, dtype=F64) + 0.5) * dt
    frequency = lively * (0.3 + 1.2 * torch.rand(runs, 4, 1, dtype=F64))
    size = 0.7 * torch.randn(runs, 4, 3, dtype=F64)
    angle = 2 * math.pi * torch.rand(runs, 4, 1, dtype=F64)
    wave = torch.sin(frequency * t + angle).mT
    acc_w = -wave @ (frequency.square() * size)
    v0 = (torch.cos(angle).mT @ (frequency * size)).squeeze(1)
    turn = lively * 0.4 * torch.randn(runs, 4, 3, dtype=F64)
    gyr_s = wave @ turn
    quiet = torch.zeros_like(gyr_s)
    turns, half_turns = (exact_step(quiet, gyr_s, h)[0] for h in (dt, 0.5 * dt))
    attitudes = [scipy_matrices(uniform(runs, F64))]
    for k in range(count):
        attitudes.append(attitudes[k] @ turns[:, k])
    R_ws = torch.stack(attitudes, 1)
    acc_s = so3.rotate((R_ws[:, :-1] @ half_turns).mT, acc_w - G_W)
    _, dv, dp = exact_step(acc_s, gyr_s, dt)
    zero = torch.zeros(runs, 1, 3, dtype=F64)
    v_w = (G_W * dt + so3.rotate(R_ws[:, :-1], dv)).cumsum(1)
    v_w = v0.unsqueeze(1) + torch.cat((zero, v_w), 1)
    p_w = v_w[:, :-1] * dt + 0.5 * G_W * dt**2 + so3.rotate(R_ws[:, :-1], dp)
    p_w = torch.cat((zero, p_w.cumsum(1)), 1)
    return Flight(
        torch.full((count,), dt, dtype=F64),
        acc_s,
        gyr_s,
        R_ws,
        v_w,
        p_w,
    )


def awkward_attitudes(count: int) -> Tensor:
    """Uniform, near identity, near half turns, and with the nose straight up or down."""
    some = count // 4
    pitch = torch.zeros(some, 3, dtype=F64)
    pitch[:, 1] = math.pi / 2 * torch.where(torch.arange(some) % 2 == 0, 1.0, -1.0)
    yaw = torch.zeros(some, 3, dtype=F64)
    yaw[:, 2] = 3 * torch.randn(some, dtype=F64)
    vertical = scipy_matrices(yaw) @ scipy_matrices(pitch)
    rest = count - 3 * some
    near = torch.cat((near_identity(some, F64), near_half_turn(some, F64)))
    return torch.cat((vertical, scipy_matrices(torch.cat((near, uniform(rest, F64))))))


def awkward_belief(filter_: CloningFilter, count: int) -> Belief:
    """Random states and clones with an arbitrary covariance."""
    shape = (count, filter_.config.clones)
    R_ws = awkward_attitudes(count)
    start = start_at_truth(
        R_ws,
        3 * torch.randn(count, 3, dtype=F64),
        10 * torch.randn(count, 3, dtype=F64),
        StartStd(),
        bias_acc_s=0.1 * torch.randn(count, 3, dtype=F64),
        bias_gyr_s=0.05 * torch.randn(count, 3, dtype=F64),
    )
    belief = filter_.start(start)
    n = belief.P.shape[-1]
    root = torch.randn(count, n, n, dtype=F64) / n
    clones = Clones(
        R_ws=torch.stack([awkward_attitudes(count) for _ in range(shape[1])], 1),
        p_w=torch.randn(*shape, 3, dtype=F64),
        name=torch.arange(shape[1]).expand(shape).contiguous(),
        t=torch.zeros(shape, dtype=F64),
        is_used=torch.zeros(shape, dtype=torch.bool),
    )
    return Belief(
        t=belief.t,
        state=belief.state,
        network_error=torch.randn(count, 3, dtype=F64),
        clones=clones,
        P=root @ root.mT,
        health=belief.health,
    )


def measure(mean: Tensor, std: float, quantity: Quantity = Quantity.DISPLACEMENT) -> Measurement:
    """With equal standard deviations along the coordinate axes."""
    axes = torch.eye(3, dtype=mean.dtype).expand(*mean.shape, 3)
    return Measurement(mean, Covariance(axes, torch.full_like(mean, math.log(std))), quantity)


def noisy(
    flight: Flight, noise: ImuNoise, bias_acc_s: Tensor, bias_gyr_s: Tensor
) -> tuple[Flight, Tensor, Tensor]:
    """Samples with white noise and walking biases that match a noise model."""
    dt = flight.dt.unsqueeze(-1)
    like = torch.randn_like
    walk_acc = (noise.acc_walk * dt.sqrt() * like(flight.acc_s)).cumsum(-2)
    walk_gyr = (noise.gyr_walk * dt.sqrt() * like(flight.gyr_s)).cumsum(-2)
    first = torch.zeros_like(walk_acc[:, :1])
    b_a = bias_acc_s.unsqueeze(1) + torch.cat((first, walk_acc), 1)
    b_g = bias_gyr_s.unsqueeze(1) + torch.cat((first, walk_gyr), 1)
    return (
        Flight(
            flight.dt,
            flight.acc_s + b_a[:, :-1] + noise.acc / dt.sqrt() * like(flight.acc_s),
            flight.gyr_s + b_g[:, :-1] + noise.gyr / dt.sqrt() * like(flight.gyr_s),
            flight.R_ws,
            flight.v_w,
            flight.p_w,
        ),
        b_a,
        b_g,
    )
