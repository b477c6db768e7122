"""What a network's measurement says of a state: predictions and their Jacobians.

A displacement is that between two clones, a velocity that of now. Either may be given in the
world, in the world without the heading of the window's first pose, or in the last sensor frame.
"""

from dataclasses import dataclass, replace
from enum import Enum

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from ginio.core.measurement import Quantity
from ginio.filters.belief import EMPTY, Belief
from ginio.filters.chart import Chart
from ginio.geometry import frames, so3
from ginio.geometry.so3 import Matrix3, Vector

Names = Int64[Tensor, "*batch"] | int


class Frame(Enum):
    """The frame f of a measurement."""

    WORLD = "world"
    HEADING = "heading"
    """The world turned by the heading of the window's first pose, `frames.yaw_rotation`."""
    LAST = "last"
    """The sensor frame at the end of the window: of now, for a velocity."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """``h(x)``, its Jacobian, and where it exists."""

    value: Vector
    H: Float[Tensor, "*batch 3 n"]
    exists: Bool[Tensor, "*batch"]


@dataclass(frozen=True, slots=True)
class Pose:
    """The pose at one end of a window, and which slot of the clones holds it."""

    R_ws: Matrix3
    p_w: Vector
    slot: Float[Tensor, "*batch clone"]
    exists: Bool[Tensor, "*batch"]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A measurement frame, and how it turns with the pose that defines it."""

    R_wf: Matrix3
    by_theta: Matrix3
    """Rotation of the frame, in the frame, by a rotation of that pose's sensor."""
    exists: Bool[Tensor, "*batch"]


@dataclass(frozen=True, slots=True)
class Span:
    """The poses at both ends of a window, and whether it has anything new to say."""

    first: Pose
    last: Pose
    name: Int64[Tensor, "*batch"]
    is_new: Bool[Tensor, "*batch"]

    def marked(self, belief: Belief, used: Bool[Tensor, "*batch"]) -> Belief:
        """The belief, with this window applied once and for all in some of the runs."""
        clones, health = belief.clones, belief.health
        here = (self.last.slot > 0) & used.unsqueeze(-1)
        newest = torch.maximum(health.last_window, self.name)
        return replace(
            belief,
            clones=replace(clones, is_used=clones.is_used | here),
            health=replace(health, last_window=torch.where(used, newest, health.last_window)),
        )


def span(belief: Belief, quantity: Quantity, begin: Names, end: Names) -> Span:
    """The poses of a window by the names of its ends; a velocity ends now."""
    begin, end = named(belief, begin), named(belief, end)
    first = find(belief, begin)
    if quantity is Quantity.VELOCITY:
        return Span(first, now(belief), end, end > belief.health.last_window)
    last = find(belief, end)
    is_used = ((last.slot > 0) & belief.clones.is_used).any(-1)
    return Span(first, last, torch.full_like(end, EMPTY), ~is_used & first.exists & last.exists)


def named(belief: Belief, name: Names) -> Int64[Tensor, "*batch"]:
    """One name for each run."""
    if isinstance(name, int):
        return torch.full_like(belief.t, name, dtype=torch.int64)
    return name.to(belief.t.device).expand(belief.t.shape)


def find(belief: Belief, name: Int64[Tensor, "*batch"]) -> Pose:
    """The clone of a name; where there is none, ``exists`` is false."""
    clones = belief.clones
    hit = (clones.name == name.unsqueeze(-1)) & (clones.name >= 0)
    slot = hit.to(clones.p_w.dtype)
    return Pose(
        R_ws=(slot[..., None, None] * clones.R_ws).sum(-3),
        p_w=(slot.unsqueeze(-1) * clones.p_w).sum(-2),
        slot=slot,
        exists=hit.any(-1),
    )


def now(belief: Belief) -> Pose:
    """The present pose, which is in no slot."""
    exists = torch.ones_like(belief.t, dtype=torch.bool)
    slot = torch.zeros_like(belief.clones.t)
    return Pose(belief.state.R_ws, belief.state.p_w, slot, exists)


def predict(
    chart: Chart,
    belief: Belief,
    quantity: Quantity,
    frame: Frame,
    window: Span,
    root: Matrix3,
) -> Prediction:
    """``h(x) = R_wfᵀ x_w + root R_wfᵀ R_wl u`` with u the network error (Eq. 12).

    Args:
        chart: of the errors by which H differentiates.
        belief: the state.
        quantity: displacement from first to last, or the velocity of now.
        frame: of the measurement.
        window: its poses; a velocity needs the first one for its heading only.
        root: standard deviation of the common error as a matrix, in the measurement frame.
    """
    first, last = window.first, window.last
    is_velocity = quantity is Quantity.VELOCITY
    x_w = belief.state.v_w if is_velocity else last.p_w - first.p_w
    turn = _turn(frame, first, last)
    R_fw = turn.R_wf.mT
    R_fl = R_fw @ last.R_ws
    seen, error = so3.rotate(R_fw, x_w), so3.rotate(R_fl, belief.network_error)
    common = root @ R_fl
    hats = so3.hat(torch.stack((seen, error, belief.network_error))).unbind(0)
    by_turn = (hats[0] + root @ hats[1]) @ turn.by_theta
    by_last = -common @ hats[2]
    o = torch.zeros_like(by_turn)
    if frame is Frame.LAST:
        by_last, by_turn = by_last + by_turn, o
    if is_velocity:
        rows = (by_last, R_fw @ chart.axes(belief.state.R_ws), o, o, o, common)
        of_first, of_last = (by_turn, o), (o, o)
    else:
        rows = (o, o, o, o, o, common)
        of_first = (by_turn, -R_fw @ chart.axes(first.R_ws))
        of_last = (by_last, R_fw @ chart.axes(last.R_ws))
    clones = _in_slots(first.slot, of_first) + _in_slots(last.slot, of_last)
    return Prediction(
        value=seen + so3.rotate(root, error),
        H=torch.cat((*rows, clones), dim=-1),
        exists=turn.exists,
    )


def _turn(frame: Frame, first: Pose, last: Pose) -> _Turn:
    eye = so3.identity_like(last.p_w)
    always = torch.ones_like(last.exists)
    match frame:
        case Frame.WORLD:
            return _Turn(eye, torch.zeros_like(eye), always)
        case Frame.LAST:
            return _Turn(last.R_ws, eye, always)
        case Frame.HEADING:
            row, defined = frames.yaw_gradient(first.R_ws)
            o = torch.zeros_like(row)
            by_theta = torch.stack((o, o, row), dim=-2)
            return _Turn(frames.yaw_rotation(first.R_ws), by_theta, first.exists & defined)


def _in_slots(
    slot: Float[Tensor, "*batch clone"], blocks: tuple[Matrix3, Matrix3]
) -> Float[Tensor, "*batch 3 m"]:
    """Derivatives by a pose, in the columns of its clone."""
    both = torch.cat(blocks, dim=-1)
    return (both.unsqueeze(-2) * slot[..., None, :, None]).flatten(-2)
