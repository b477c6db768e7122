"""Errors of an estimated path; whatever was aligned first is part of the name."""

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.geometry import alignment, frames, so3

Points = Float[Tensor, "*batch time 3"]
Attitudes = Float[Tensor, "*batch time 3 3"]
Score = Float[Tensor, "*batch"]


def rmse(p_true: Points, p_estimate: Points) -> Score:
    """Root mean square distance."""
    return (p_true - p_estimate).square().sum(-1).mean(-1).sqrt()


def ate_se3(p_true: Points, p_estimate: Points) -> Score:
    """Absolute error after the best rotation and translation."""
    return rmse(p_true, alignment.umeyama(p_true, p_estimate)(p_estimate))


def ate_yaw(p_true: Points, p_estimate: Points) -> Score:
    """Absolute error after the best heading and translation."""
    return rmse(p_true, alignment.align_yaw(p_true, p_estimate)(p_estimate))


def ate_origin(p_true: Points, p_estimate: Points) -> Score:
    """Absolute error after the first points are made one."""
    return rmse(p_true, alignment.align_origin(p_true, p_estimate)(p_estimate))


def rte(
    p_true: Points, p_estimate: Points, R_true: Attitudes, R_estimate: Attitudes, *, step: int
) -> Score:
    """Relative error over ``step`` samples, heading error removed at each start (Eq. 32)."""
    if not 0 < step < p_true.shape[-2]:
        raise ValueError(f"step must be in 1..{p_true.shape[-2] - 1} samples; found {step}")
    moved_true = p_true[..., step:, :] - p_true[..., :-step, :]
    moved_estimate = p_estimate[..., step:, :] - p_estimate[..., :-step, :]
    yaw_true = frames.yaw_rotation(R_true[..., :-step, :, :])
    yaw_estimate = frames.yaw_rotation(R_estimate[..., :-step, :, :])
    return rmse(moved_true, so3.rotate(yaw_true @ yaw_estimate.mT, moved_estimate))


def drift_ratio(p_true: Points, p_estimate: Points) -> Score:
    """End-point error in percent of the true path length (Eq. 33)."""
    path = p_true.diff(dim=-2).norm(dim=-1).sum(-1)
    return 100 * (p_true[..., -1, :] - p_estimate[..., -1, :]).norm(dim=-1) / path


def velocity_rmse(v_true: Points, v_estimate: Points) -> Float[Tensor, "*batch"]:
    """Root mean square velocity error, all three components together."""
    return torch.sqrt((v_true - v_estimate).square().sum(-1).mean(-1))
