"""How a run begins: at rest, in motion, or, where a test asks for it, at the truth.

No start knows the heading or the position of the world; both are set to zero and known as such.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from ginio.filters.belief import LARGEST_BIAS_ACC_MPS2
from ginio.filters.strapdown import Signal, State
from ginio.geometry import frames, so3
from ginio.geometry.frames import GRAVITY_MPS2
from ginio.geometry.integrals import running_products
from ginio.geometry.so3 import Matrix3, Vector


@dataclass(frozen=True, kw_only=True)
class StartStd:
    """What is not known when a run begins, as standard deviations."""

    tilt: float = 0.01
    """Beyond what the accelerometer's bias explains, radians."""
    heading: float = 1e-3
    """Zero but for rounding, as the first heading is zero by definition."""
    velocity: float = 0.05
    """At rest; a moving start has its own, m/s."""
    position: float = 1e-3
    bias_acc: float = 0.1
    bias_gyr: float = 2e-3
    moving_velocity: float = 2.0
    largest_tilt: float = 0.5

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} must be finite and not negative; found {value}")


@dataclass(frozen=True, kw_only=True)
class RestLimits:
    """What counts as standing still."""

    gyr_std: float = 0.02
    """Spread of the angular rate over the samples, rad/s."""
    acc_std: float = 0.15
    """Spread of the specific force over the samples, m/s²."""
    gyr_mean: float = 0.45
    """A bias, and no rotation: largest mean angular rate, rad/s."""
    acc_mean: float = 3.0
    """A bias, and no acceleration: largest difference of the mean force from gravity, m/s²."""
    gyr_change: float = 0.005
    """Between the means of both halves, rad/s."""
    acc_change: float = 0.05
    """Between the means of both halves, m/s²."""


@dataclass(frozen=True, slots=True)
class Start:
    """A state with its covariance in the usual coordinates of `belief.Estimate`."""

    t: Float64[Tensor, "*batch"]
    state: State
    covariance: Float64[Tensor, "*batch 15 15"]


def is_resting(
    acc_s: Signal, gyr_s: Signal, limits: RestLimits | None = None
) -> Bool[Tensor, "*batch"]:
    """Whether samples of a second or more are those of a sensor that stands still.

    Steady rotation about the vertical at less than ``gyr_mean`` looks like a bias, and nothing in
    the samples tells them apart.
    """
    limits = RestLimits() if limits is None else limits
    half = acc_s.shape[-2] // 2
    if half < 1:
        raise ValueError(f"rest needs at least two samples; found {acc_s.shape[-2]}")
    acc, gyr = acc_s.mean(-2), gyr_s.mean(-2)
    force = (so3.length(acc) - GRAVITY_MPS2).abs()
    acc_change = so3.length(acc_s[..., :half, :].mean(-2) - acc_s[..., half:, :].mean(-2))
    gyr_change = so3.length(gyr_s[..., :half, :].mean(-2) - gyr_s[..., half:, :].mean(-2))
    return (
        (_spread(gyr_s) < limits.gyr_std)
        & (_spread(acc_s) < limits.acc_std)
        & (so3.length(gyr) < limits.gyr_mean)
        & (force < limits.acc_mean)
        & (gyr_change < limits.gyr_change)
        & (acc_change < limits.acc_change)
    )


def _spread(signal: Signal) -> Float[Tensor, "*batch"]:
    """Root mean square distance from the mean, per axis."""
    return (signal - signal.mean(-2, keepdim=True)).square().mean((-2, -1)).sqrt()


def start_at_rest(acc_s: Signal, gyr_s: Signal, std: StartStd | None = None) -> Start:
    """Level and gyroscope bias from samples at rest; check `is_resting` first.

    What the accelerometer's bias does to the level is not noise: tilt and bias err together, and
    are correlated from the start. A force that differs from gravity by more than a sound sensor's
    bias shows the vertical part of a bias, which the state then begins with.
    """
    std = StartStd() if std is None else std
    mean = acc_s.mean(-2).double()
    bias_gyr_s = gyr_s.mean(-2).double()
    count = gyr_s.shape[-2]
    settled = (_spread(gyr_s).double() / count**0.5).clamp(min=1e-5)
    state = replace(_level_state(mean, bias_gyr_s), bias_acc_s=_evident_bias(mean))
    covariance = _levelled(mean, std, torch.full_like(mean[..., 0], std.tilt), std.velocity)
    eye = torch.eye(3, dtype=mean.dtype, device=mean.device)
    covariance[..., 12:, 12:] = settled.square()[..., None, None] * eye
    return Start(torch.zeros_like(mean[..., 0]), state, covariance)


def _evident_bias(acc_s: Vector) -> Vector:
    force = so3.length(acc_s).unsqueeze(-1)
    gap = force - GRAVITY_MPS2
    is_evident = gap.abs() > LARGEST_BIAS_ACC_MPS2
    return torch.where(is_evident, gap * acc_s / force, torch.zeros_like(acc_s))


def start_moving(
    acc_s: Signal, gyr_s: Signal, dt: Float[Tensor, "*#batch time"], std: StartStd | None = None
) -> Start:
    """Level from the mean force of a motion, seen from the last sample; tilt as uncertain as that.

    The force is turned into the last sensor frame by the gyroscope. What it varies by is
    acceleration, and the mean of that is unknown to about the same size.
    """
    std = StartStd() if std is None else std
    acc_s, gyr_s = acc_s.double(), gyr_s.double()
    turned = running_products(so3.exp(gyr_s * dt.unsqueeze(-1)))
    acc_l = so3.rotate(turned[..., -1:, :, :].mT @ turned, acc_s)
    mean = acc_l.mean(-2)
    gap = (so3.length(mean) - GRAVITY_MPS2).abs()
    tilt = ((_spread(acc_l).square() + gap.square()).sqrt() / GRAVITY_MPS2 + std.tilt).clamp(
        max=std.largest_tilt
    )
    state = _level_state(mean, torch.zeros_like(mean))
    covariance = _levelled(mean, std, tilt, std.moving_velocity)
    return Start(torch.zeros_like(mean[..., 0]), state, covariance)


def start_at_truth(
    R_ws: Matrix3,
    v_w: Vector,
    p_w: Vector,
    std: StartStd | None = None,
    *,
    bias_acc_s: Vector | None = None,
    bias_gyr_s: Vector | None = None,
) -> Start:
    """Where the truth says, as uncertain as asked for; results that begin here have to say so."""
    std = StartStd() if std is None else std
    zero = torch.zeros_like(v_w.double())
    state = State(
        R_ws=R_ws.double(),
        v_w=v_w.double(),
        p_w=p_w.double(),
        bias_acc_s=zero if bias_acc_s is None else bias_acc_s.double(),
        bias_gyr_s=zero if bias_gyr_s is None else bias_gyr_s.double(),
    )
    up_s = state.R_ws[..., 2, :]
    covariance = _independent(up_s, std, torch.full_like(zero[..., 0], std.tilt), std.velocity)
    return Start(torch.zeros_like(zero[..., 0]), state, covariance)


def _level_state(acc_s: Vector, bias_gyr_s: Vector) -> State:
    zero = torch.zeros_like(acc_s)
    return State(frames.level(acc_s), zero, zero, zero, bias_gyr_s)


def _independent(
    up_s: Vector, std: StartStd, tilt: Float[Tensor, "*batch"], velocity: float
) -> Float64[Tensor, "*batch 15 15"]:
    """Tilt and heading along their own directions, everything else alike in all."""
    variances = [velocity] * 3 + [std.position] * 3 + [std.bias_acc] * 3 + [std.bias_gyr] * 3
    covariance = torch.diag_embed(up_s.new_tensor([0.0] * 3 + variances).square())
    covariance = covariance.expand(*up_s.shape[:-1], 15, 15).clone()
    vertical = up_s.unsqueeze(-1) * up_s.unsqueeze(-2)
    level = so3.identity_like(up_s) - vertical
    covariance[..., :3, :3] = std.heading**2 * vertical + tilt.square()[..., None, None] * level
    return covariance


def _levelled(
    acc_s: Vector, std: StartStd, tilt: Float[Tensor, "*batch"], velocity: float
) -> Float64[Tensor, "*batch 15 15"]:
    """A bias b tilts a level by ``up × b / g``."""
    up_s = acc_s / so3.length(acc_s).unsqueeze(-1)
    covariance = _independent(up_s, std, tilt, velocity)
    lean = so3.hat(up_s) / GRAVITY_MPS2
    covariance[..., :3, :3] += std.bias_acc**2 * lean @ lean.mT
    covariance[..., :3, 9:12] = std.bias_acc**2 * lean
    covariance[..., 9:12, :3] = std.bias_acc**2 * lean.mT
    return covariance
