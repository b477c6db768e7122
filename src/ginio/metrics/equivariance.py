"""How far a network is from the interface law, as numbers (paper: Numerical Verification)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.core.interfaces import Network
from ginio.core.measurement import Covariance
from ginio.core.window import GYR_CHANNEL, IMU_CHANNELS, imu_channels
from ginio.geometry import frames, so3


@dataclass(frozen=True, slots=True)
class LawErrors:
    """Errors of the mean law and the covariance law, one for each window and rotation."""

    mean: Float[Tensor, " case"]
    """``|μ(ρ(R)x) - R μ(x)|`` (Eq. 18)."""
    mean_relative: Float[Tensor, " case"]
    """The same over ``|R μ(x)|``."""
    covariance: Float[Tensor, " case"]
    """``|Σ(ρ(R)x) - R Σ(x) Rᵀ|`` in the Frobenius norm (Eq. 19)."""
    covariance_relative: Float[Tensor, " case"]
    """The same over ``|R Σ(x) Rᵀ|`` (Eq. 40)."""


def law_errors(
    network: Network,
    features: Float[Tensor, "batch channel 3 time"],
    R_ms: Float[Tensor, "batch 3 3"],
) -> LawErrors:
    """Turn each window by its rotation, run again, and compare with the turned answer.

    Reflections may stand in for rotations: ``R_ms`` is in O(3).
    """
    mean_s, axes_s, log_std_s = network(features)
    mean_m, axes_m, log_std_m = network(turned(R_ms, features))
    expected_mean = so3.rotate(R_ms, mean_s)
    expected = frames.rotate_tensor(R_ms, Covariance(axes_s, log_std_s).matrix())
    mean = (mean_m - expected_mean).norm(dim=-1)
    difference = Covariance(axes_m, log_std_m).matrix() - expected
    covariance = torch.linalg.matrix_norm(difference)
    return LawErrors(
        mean=mean,
        mean_relative=mean / expected_mean.norm(dim=-1),
        covariance=covariance,
        covariance_relative=covariance / torch.linalg.matrix_norm(expected),
    )


def turned(
    R_ms: Float[Tensor, "batch 3 3"], features: Float[Tensor, "batch channel 3 time"]
) -> Float[Tensor, "batch channel 3 time"]:
    """``ρ(R_ms)`` on features, for R_ms in O(3).

    Angular rates are axial: a mirror turns them about beside mirroring them.
    """
    inertial = imu_channels(features.shape[1])
    handedness = torch.ones_like(features[:, :, :1, :1])
    handedness[:, GYR_CHANNEL:inertial:IMU_CHANNELS] = torch.det(R_ms).sign()[:, None, None, None]
    return handedness * (R_ms.unsqueeze(1) @ features)
