"""The measurement model of an inertial sensor."""

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.frames import GRAVITY_MPS2

Signal = Float[Tensor, "time 3"]


def gravity_w(like: Float[Tensor, "*batch"]) -> Float[Tensor, " 3"]:
    """Gravity in a world frame with z up."""
    return torch.tensor([0.0, 0.0, -GRAVITY_MPS2], dtype=like.dtype, device=like.device)


def inertial_measurements(
    acc_w: Signal,
    omega_b: Signal,
    R_wb: Float[Tensor, "time 3 3"],
    R_sb: Float[Tensor, "3 3"],
    error_acc_s: Float[Tensor, "#time 3"],
    error_gyr_s: Float[Tensor, "#time 3"],
) -> tuple[Signal, Signal]:
    """Specific force and angular rate a sensor reads (Eq. 10).

    Args:
        acc_w: kinematic acceleration of the sensor's origin in the world.
        omega_b: angular velocity of the body in its own frame.
        R_wb: attitude of the body.
        R_sb: mounting, body coordinates to sensor coordinates.
        error_acc_s: bias and noise of the accelerometer.
        error_gyr_s: bias and noise of the gyroscope.
    """
    force_b = so3.rotate(R_wb.mT, acc_w - gravity_w(acc_w))
    return force_b @ R_sb.mT + error_acc_s, omega_b @ R_sb.mT + error_gyr_s
