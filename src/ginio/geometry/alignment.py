"""Rigid alignment of an estimated path to the true one, before errors are measured."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.projection import polar
from ginio.geometry.so3 import Matrix3, Scalar, Vector

Points = Float[Tensor, "*batch time 3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """``p_a = scale R_ab p_b + t``: takes the estimate (b) to the reference (a)."""

    R_ab: Matrix3
    t_a: Vector
    scale: Scalar

    def __call__(self, p_b: Points) -> Points:
        """Aligned points."""
        turned = p_b @ self.R_ab.mT
        return self.scale[..., None, None] * turned + self.t_a.unsqueeze(-2)


def umeyama(p_a: Points, p_b: Points, *, with_scale: bool = False) -> Alignment:
    """Least-squares rotation and translation (and scale) taking b to a (Umeyama 1991)."""
    mean_a, mean_b = p_a.mean(-2), p_b.mean(-2)
    a, b = p_a - mean_a.unsqueeze(-2), p_b - mean_b.unsqueeze(-2)
    correlation = a.mT @ b
    R_ab = polar(correlation)
    if with_scale:
        scale = (R_ab * correlation).sum((-2, -1)) / b.square().sum((-2, -1))
    else:
        scale = torch.ones_like(mean_a[..., 0])
    return Alignment(
        R_ab=R_ab, t_a=mean_a - scale.unsqueeze(-1) * so3.rotate(R_ab, mean_b), scale=scale
    )


def align_yaw(p_a: Points, p_b: Points) -> Alignment:
    """Least-squares heading and translation taking b to a: the gauge freedom of an odometer."""
    mean_a, mean_b = p_a.mean(-2), p_b.mean(-2)
    a, b = p_a - mean_a.unsqueeze(-2), p_b - mean_b.unsqueeze(-2)
    correlation = a.mT @ b
    sine = correlation[..., 1, 0] - correlation[..., 0, 1]
    cosine = correlation[..., 0, 0] + correlation[..., 1, 1]
    R_ab = so3.about_z(torch.atan2(sine, cosine))
    return Alignment(R_ab=R_ab, t_a=mean_a - so3.rotate(R_ab, mean_b), scale=torch.ones_like(sine))


def align_first_pose(p_a: Points, p_b: Points, R_as: Matrix3, R_bs: Matrix3) -> Alignment:
    """Rotation and translation by which the first estimated pose becomes the first true one."""
    R_ab = R_as @ R_bs.mT
    t_a = p_a[..., 0, :] - so3.rotate(R_ab, p_b[..., 0, :])
    return Alignment(R_ab=R_ab, t_a=t_a, scale=torch.ones_like(t_a[..., 0]))


def align_origin(p_a: Points, p_b: Points) -> Alignment:
    """Translation alone: the first estimated point becomes the first true one."""
    t_a = p_a[..., 0, :] - p_b[..., 0, :]
    eye = torch.eye(3, dtype=p_a.dtype, device=p_a.device).expand(*t_a.shape[:-1], 3, 3)
    return Alignment(R_ab=eye, t_a=t_a, scale=torch.ones_like(t_a[..., 0]))
