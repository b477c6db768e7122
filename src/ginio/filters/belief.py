"""What a filter believes: a state, clones of past poses, and how uncertain all of it is.

A belief is a value. A filter returns new ones, so runs can be cut, resumed, rolled back and tried
twice. Every leading axis is a run of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from ginio.filters.chart import Chart, congruent
from ginio.filters.strapdown import State
from ginio.geometry import so3
from ginio.geometry.integrals import turning

# Order of errors: attitude, velocity, position, biases, network error; then (θ, p) of each clone.
THETA, VELOCITY, POSITION, BIAS_ACC, BIAS_GYR, NETWORK = (slice(3 * k, 3 * k + 3) for k in range(6))
CORE, MOTION, CLONE = 18, 15, 6
EMPTY = -1
LARGEST_BIAS_ACC_MPS2 = 0.4
"""Of an accelerometer in order."""


@dataclass(frozen=True, slots=True)
class Clones:
    """Poses at the ends of windows, in slots; an empty slot has the name -1 and no uncertainty."""

    R_ws: Float64[Tensor, "*batch clone 3 3"]
    p_w: Float64[Tensor, "*batch clone 3"]
    name: Int64[Tensor, "*batch clone"]
    t: Float64[Tensor, "*batch clone"]
    is_used: Bool[Tensor, "*batch clone"]
    """A window that ends here has been applied."""


@dataclass(frozen=True, slots=True)
class Health:
    """What happened to a run so far. Nothing here raises; everything here can be read."""

    accepted: Int64[Tensor, "*batch"]
    rejected: Int64[Tensor, "*batch"]
    """Kept out by the gate."""
    skipped: Int64[Tensor, "*batch"]
    """Not finite, repeated, or of a window whose clones are gone."""
    recoveries: Int64[Tensor, "*batch"]
    """How often uncertainty was inflated because nothing passed the gate."""
    resets: Int64[Tensor, "*batch"]
    accepted_t: Float64[Tensor, "*batch"]
    """Time of the last accepted update, or of the start."""
    rejecting_t: Float64[Tensor, "*batch"]
    """Time of the first rejection since then; infinite without one."""
    nis: Float64[Tensor, "*batch"]
    """Running mean of the normalised innovation squared; 3 if all is honest."""
    log_inflation: Float64[Tensor, "*batch"]
    """By which measurement covariances are multiplied; zero if all is honest."""
    log_growth: Float64[Tensor, "*batch"]
    """By which the last update multiplied the state's covariance; zero if all is honest."""
    last_window: Int64[Tensor, "*batch"]
    """Newest window whose velocity has been applied."""
    is_settled: Bool[Tensor, "*batch"]
    """The vertical has been known well, and the network agreed, at least once since the start."""

    @property
    def is_initialising(self) -> Bool[Tensor, "*batch"]:
        """Begun in motion, and the level it began with is still a guess."""
        return ~self.is_settled

    @property
    def is_inconsistent(self) -> Bool[Tensor, "*batch"]:
        """The network is less certain than it says: its covariances are being inflated."""
        return self.log_inflation > 0


@dataclass(frozen=True, slots=True)
class Belief:
    """Estimate and covariance of any number of runs."""

    t: Float64[Tensor, "*batch"]
    state: State
    network_error: Float64[Tensor, "*batch 3"]
    """Standardised error common to neighbouring windows, in the last sensor frame."""
    clones: Clones
    P: Float64[Tensor, "*batch n n"]
    health: Health
    cloned: int = 0
    """Clones made so far; decides which slot comes next."""

    @property
    def has_large_bias(self) -> Bool[Tensor, "*batch"]:
        """An accelerometer with such a bias is broken, or in other units than it says."""
        return so3.length(self.state.bias_acc_s) > LARGEST_BIAS_ACC_MPS2

    @property
    def tilt_std(self) -> Float64[Tensor, "*batch"]:
        """Of the direction of the vertical, radians; errors of attitude are alike in all charts."""
        up_s, P = self.state.R_ws[..., 2, :], self.P[..., THETA, THETA]
        about_vertical = (up_s * so3.rotate(P, up_s)).sum(-1)
        level = P.diagonal(dim1=-2, dim2=-1).sum(-1) - about_vertical
        return (0.5 * level).clamp(min=0).sqrt()

    def __getitem__(self, index: Any) -> "Belief":
        """Some of the runs, by an index of the leading axes."""
        return map_tensors(lambda x: x[index], self)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A belief in the usual coordinates, whatever the chart of its filter.

    Errors: rotation on the right of the attitude, velocity and position in the world, biases of
    accelerometer and gyroscope in the sensor frame.
    """

    t: Float64[Tensor, "*batch"]
    state: State
    covariance: Float64[Tensor, "*batch 15 15"]

    @property
    def std(self) -> Float64[Tensor, "*batch 15"]:
        """Standard deviations."""
        return self.covariance.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()


def retract(chart: Chart, belief: Belief, delta: Float[Tensor, "*batch n"]) -> Belief:
    """``x ⊞ δ`` of state and clones; the covariance stays."""
    state, clones = belief.state, belief.clones
    count = clones.t.shape[-1]
    theta, rho = delta[..., CORE:].unflatten(-1, (count, 2, 3)).unbind(-2)
    # All poses at once, the present one first.
    turned = turning(torch.cat((delta[..., None, THETA], theta), dim=-2))
    R_ws = torch.cat((state.R_ws.unsqueeze(-3), clones.R_ws), dim=-3)
    p_w = torch.cat((state.p_w.unsqueeze(-2), clones.p_w), dim=-2)
    rho = torch.cat((delta[..., None, POSITION], rho), dim=-2)
    p_w = p_w + chart.to_world(R_ws, turned.gamma_1, rho)
    jacobian = turned.gamma_1[..., 0, :, :]
    R_new = R_ws @ turned.gamma_0
    moved = State(
        R_ws=R_new[..., 0, :, :],
        v_w=state.v_w + chart.to_world(state.R_ws, jacobian, delta[..., VELOCITY]),
        p_w=p_w[..., 0, :],
        bias_acc_s=state.bias_acc_s + delta[..., BIAS_ACC],
        bias_gyr_s=state.bias_gyr_s + delta[..., BIAS_GYR],
    )
    return replace(
        belief,
        state=moved,
        network_error=belief.network_error + delta[..., NETWORK],
        clones=replace(clones, R_ws=R_new[..., 1:, :, :], p_w=p_w[..., 1:, :]),
    )


def state_error(chart: Chart, state: State, other: State) -> Float[Tensor, "*batch 15"]:
    """``other ⊟ state``: the error of an estimate whose true state is the other."""
    theta = so3.local(state.R_ws, other.R_ws)
    return torch.cat(
        (
            theta,
            chart.from_world(state.R_ws, theta, other.v_w - state.v_w),
            chart.from_world(state.R_ws, theta, other.p_w - state.p_w),
            other.bias_acc_s - state.bias_acc_s,
            other.bias_gyr_s - state.bias_gyr_s,
        ),
        dim=-1,
    )


def usual_axes(chart: Chart, R_ws: so3.Matrix3) -> Float[Tensor, "*batch 5 3 3"]:
    """Takes small errors of a chart to the usual coordinates of `Estimate`, three by three."""
    eye, axes = so3.identity_like(R_ws[..., 0]), chart.axes(R_ws)
    return torch.stack((eye, axes, axes, eye, eye), dim=-3)


def export(chart: Chart, belief: Belief) -> Estimate:
    """State and covariance in the usual coordinates."""
    axes = usual_axes(chart, belief.state.R_ws)
    covariance = congruent(axes, belief.P[..., :MOTION, :MOTION])
    return Estimate(belief.t, belief.state, covariance)


def map_tensors(function: Callable[..., Tensor], *values: Any) -> Any:
    """A value like the given ones, with each tensor a function of theirs."""
    first = values[0]
    if isinstance(first, Tensor):
        return function(*values)
    if not is_dataclass(first) or isinstance(first, type):
        return first
    parts = ((f.name, [getattr(v, f.name) for v in values]) for f in fields(first))
    return replace(first, **{name: map_tensors(function, *part) for name, part in parts})


ValueT = TypeVar("ValueT")


def choose(mask: Bool[Tensor, "*batch"], value: ValueT, other: ValueT) -> ValueT:
    """One value of tensors where the mask holds, the other elsewhere."""

    def pick(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(mask.reshape(*mask.shape, *(1,) * (a.ndim - mask.ndim)), a, b)

    return map_tensors(pick, value, other)
