"""Inertial samples to motion: exact for samples that are constant over their interval.

A chunk of samples is integrated at once, in the sensor frame at its start, where neither the
attitude nor the velocity enters. Derivation: docs/derivations/filters.md.
"""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.integrals import running_products, turning
from ginio.geometry.so3 import Matrix3, Scalar, Vector

Signal = Float[Tensor, "*batch time 3"]
Intervals = Float[Tensor, "*#batch time"]
Inputs = Float[Tensor, "*batch time 9 6"]
Motion15 = Float[Tensor, "*batch 15 15"]

INPUTS = 6


@dataclass(frozen=True, kw_only=True)
class ImuNoise:
    """Continuous densities, so that the tuning does not depend on the rate of the sensor.

    A sample that stands for an interval dt has the variance ``density² / dt``.
    """

    acc: float = 3e-3
    """Specific force, m/s²/√Hz."""
    gyr: float = 3e-4
    """Angular rate, rad/s/√Hz."""
    acc_walk: float = 1e-3
    """Random walk of the accelerometer's bias, m/s²/√s."""
    gyr_walk: float = 1e-5
    """Random walk of the gyroscope's bias, rad/s/√s."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value < float("inf"):
                raise ValueError(f"{field.name} must be finite and not negative; found {value}")


@dataclass(frozen=True, slots=True)
class State:
    """Attitude, velocity, position and biases; the uncertain part is elsewhere."""

    R_ws: Matrix3
    v_w: Vector
    p_w: Vector
    bias_acc_s: Vector
    bias_gyr_s: Vector


@dataclass(frozen=True, slots=True)
class Increment:
    """What a chunk of samples adds, in the sensor frame s at its start; e is the one at its end.

    ``transition`` and ``noise`` speak of errors in the order attitude, velocity, position,
    accelerometer bias, gyroscope bias, the first three in s.
    """

    duration: Scalar
    R_se: Matrix3
    dv_s: Vector
    dp_s: Vector
    transition: Motion15
    noise: Motion15


@dataclass(frozen=True, slots=True)
class _Path:
    """Motion at the end of each sample of a chunk, and what is left of the chunk from there."""

    R_s: Float[Tensor, "*batch time 3 3"]
    v_s: Signal
    p_s: Signal
    left: Float[Tensor, "*batch time"]
    v_left_s: Signal
    p_left_s: Signal


def integrate(
    acc_s: Signal,
    gyr_s: Signal,
    dt: Intervals,
    noise: ImuNoise,
    extra_std: Float[Tensor, "*batch time 6"] | None = None,
) -> Increment:
    """A chunk of bias-corrected samples as one step.

    Args:
        acc_s: specific force, each sample constant over its interval.
        gyr_s: angular rate, likewise.
        dt: lengths of the intervals; a sample of length zero counts for nothing.
        noise: of the samples and of the biases.
        extra_std: further standard deviation of a sample's force and rate, where it is in doubt.
    """
    dt = dt.expand(acc_s.shape[:-1])
    h = dt[..., None, None]
    phi = gyr_s * dt.unsqueeze(-1)
    turned = turning(phi)
    slope_1, slope_2 = turned.derivatives(acc_s)
    R_end = running_products(turned.gamma_0)
    R_s = torch.cat((so3.identity_like(phi[..., :1, :]), R_end[..., :-1, :, :]), dim=-3)
    by_force = (R_s @ turned.gamma_1) * h, (R_s @ turned.gamma_2) * h.square()
    by_rate = (R_s @ slope_1) * h.square(), (R_s @ slope_2) * h**3
    path = _path(R_end, so3.rotate(by_force[0], acc_s), so3.rotate(by_force[1], acc_s), dt)
    inputs = _effect_of_inputs(path, by_force, by_rate)
    return Increment(
        duration=dt.sum(-1),
        R_se=R_end[..., -1, :, :],
        dv_s=path.v_s[..., -1, :],
        dp_s=path.p_s[..., -1, :],
        transition=_transition(path, dt.sum(-1), inputs.sum(-3)),
        noise=_noise(inputs, dt, noise, extra_std),
    )


def _path(
    R_end: Float[Tensor, "*batch time 3 3"],
    dv_s: Signal,
    dp_s: Signal,
    dt: Float[Tensor, "*batch time"],
) -> _Path:
    h = dt.unsqueeze(-1)
    v_s = dv_s.cumsum(-2)
    p_s = ((v_s - dv_s) * h + dp_s).cumsum(-2)
    left = dt.sum(-1, keepdim=True) - dt.cumsum(-1)
    v_left_s = v_s[..., -1:, :] - v_s
    p_left_s = p_s[..., -1:, :] - p_s - left.unsqueeze(-1) * v_s
    return _Path(R_end, v_s, p_s, left, v_left_s, p_left_s)


def _effect_of_inputs(
    path: _Path, by_force: tuple[Tensor, Tensor], by_rate: tuple[Tensor, Tensor]
) -> Inputs:
    """Derivative of attitude, velocity and position at the end by each sample's force and rate.

    A sample acts while it lasts, and what it did to attitude and velocity acts on until the end.
    """
    left = path.left[..., None, None]
    turn = by_force[0]  # ∫ R dt: what a rate does to the attitude, and a force to the velocity
    v_left, p_left = (so3.hat(torch.stack((path.v_left_s, path.p_left_s))) @ turn).unbind(0)
    v_rate = by_rate[0] - v_left
    p_rate = by_rate[1] + left * by_rate[0] - p_left
    by_f = torch.cat((torch.zeros_like(turn), turn, by_force[1] + left * turn), dim=-2)
    return torch.cat((by_f, torch.cat((turn, v_rate, p_rate), dim=-2)), dim=-1)


def _transition(path: _Path, duration: Scalar, by_inputs: Float[Tensor, "*batch 9 6"]) -> Motion15:
    """A bias is a constant error of all samples, of opposite sign."""
    eye = so3.identity_like(path.v_s[..., -1, :])
    o = torch.zeros_like(eye)
    v_turn, p_turn = so3.hat(-torch.stack((path.v_s[..., -1, :], path.p_s[..., -1, :]))).unbind(0)
    motion = (
        torch.cat((eye, o, o), dim=-1),
        torch.cat((v_turn, eye, o), dim=-1),
        torch.cat((p_turn, duration[..., None, None] * eye, eye), dim=-1),
    )
    top = torch.cat((torch.cat(motion, dim=-2), -by_inputs), dim=-1)
    return torch.cat((top, _bias_rows(top)), dim=-2)


def _noise(inputs: Inputs, dt: Intervals, noise: ImuNoise, extra_std: Tensor | None) -> Motion15:
    """Samples err independently; a bias steps at the end of each sample, and acts from there on."""
    like = {"dtype": dt.dtype, "device": dt.device}
    density = torch.tensor([noise.acc] * 3 + [noise.gyr] * 3, **like)
    walk = torch.tensor([noise.acc_walk] * 3 + [noise.gyr_walk] * 3, **like)
    counts = dt > 0
    rate = torch.where(
        counts, 1 / torch.where(counts, dt, torch.ones_like(dt)), torch.zeros_like(dt)
    )
    std = density * rate.sqrt().unsqueeze(-1)
    if extra_std is not None:
        std = (std.square() + extra_std.square()).sqrt()
    step = (walk * dt.sqrt().unsqueeze(-1)).unsqueeze(-2)
    later = inputs.cumsum(-3) - inputs.sum(-3, keepdim=True)
    motion = torch.cat((inputs * std.unsqueeze(-2), later * step), dim=-1)
    eye = torch.eye(INPUTS, **like)
    biases = torch.cat((torch.zeros_like(eye).expand(*dt.shape, 6, 6), eye * step), dim=-1)
    factor = torch.cat((motion, biases), dim=-2).movedim(-3, -2).flatten(-2)
    return factor @ factor.mT


def _bias_rows(top: Float[Tensor, "*batch 9 15"]) -> Float[Tensor, "*batch 6 15"]:
    rows = torch.eye(15, dtype=top.dtype, device=top.device)[9:]
    return rows.expand(*top.shape[:-2], 6, 15)


def advance(state: State, increment: Increment, gravity_w: Float[Tensor, " 3"]) -> State:
    """The state after a chunk; gravity acts in the world, the samples in the sensor frame."""
    T = increment.duration.unsqueeze(-1)
    R_we = state.R_ws @ increment.R_se
    # One Newton step towards the nearest rotation: products stay orthogonal for days.
    R_we = 1.5 * R_we - 0.5 * R_we @ (R_we.mT @ R_we)
    return State(
        R_ws=R_we,
        v_w=state.v_w + gravity_w * T + so3.rotate(state.R_ws, increment.dv_s),
        p_w=state.p_w
        + state.v_w * T
        + 0.5 * gravity_w * T.square()
        + so3.rotate(state.R_ws, increment.dp_s),
        bias_acc_s=state.bias_acc_s,
        bias_gyr_s=state.bias_gyr_s,
    )
