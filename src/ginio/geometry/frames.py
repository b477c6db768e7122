"""Changes of frame of the signals of a window: Last-Frame Alignment, heading, gravity."""

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.so3 import Mask, Matrix3, Vector

Rotations = Float[Tensor, "*batch time 3 3"]
Signal = Float[Tensor, "*batch time 3"]

GRAVITY_MPS2 = 9.80665


def rotate_signal(R: Float[Tensor, "*#batch #time 3 3"], signal: Signal) -> Signal:
    """``ρ(R)`` on one vector channel: each sample turned by its own or by one common rotation."""
    return so3.rotate(R, signal)


def rotate_tensor(R: Float[Tensor, "*#batch 3 3"], tensor: Matrix3) -> Matrix3:
    """``R T Rᵀ``: the congruence by which covariances and inertias change frame (Eq. 9)."""
    return R @ tensor @ R.mT


def last_frame_rotations(R_ws: Rotations) -> Rotations:
    """``R_ls = R_wlᵀ R_ws``: each sensor frame of a window seen from its last one (Eq. 7)."""
    return R_ws[..., -1:, :, :].mT @ R_ws


def align_to_last_frame(signal_s: Signal, R_ws: Rotations) -> Signal:
    """Sensor-frame samples expressed in the window's last sensor frame (Eq. 7, 25, 26).

    Only relative rotations within the window matter: a change of world frame cancels.
    """
    return so3.rotate(last_frame_rotations(R_ws), signal_s)


def align_to_world(signal_s: Signal, R_ws: Rotations) -> Signal:
    """Sensor-frame samples expressed in the world frame (Eq. 24)."""
    return so3.rotate(R_ws, signal_s)


def yaw_rotation(R_ws: Matrix3) -> Matrix3:
    """Heading of an attitude: the twist of R_ws about the vertical, as a rotation ``R_wg``.

    Of all rotations about the vertical this one is nearest to R_ws. Turning the world by a yaw
    turns the result by the same yaw. Unlike Euler angles it is smooth at pitch ±90°; the one place
    where every such heading must fail is put where the sensor hangs upside down, and there the
    identity is returned.
    """
    cosine = R_ws[..., 0, 0] + R_ws[..., 1, 1]
    sine = R_ws[..., 1, 0] - R_ws[..., 0, 1]
    length_squared = cosine.square() + sine.square()
    upside_down = length_squared < torch.finfo(R_ws.dtype).eps ** 2
    length = torch.where(upside_down, torch.ones_like(cosine), length_squared).sqrt()
    c = torch.where(upside_down, torch.ones_like(cosine), cosine / length)
    s = torch.where(upside_down, torch.zeros_like(sine), sine / length)
    o, i = torch.zeros_like(c), torch.ones_like(c)
    return so3.matrix_of(c, -s, o, s, c, o, o, o, i)


def yaw_gradient(R_ws: Matrix3) -> tuple[Vector, Mask]:
    """Derivative of the heading of ``R_ws exp(θ)`` by θ, and where it is of use.

    It grows without bound towards the attitude where the sensor hangs upside down; within 1e-3 of
    there it is zero, and the mask is false.
    """
    cosine = R_ws[..., 0, 0] + R_ws[..., 1, 1]
    sine = R_ws[..., 1, 0] - R_ws[..., 0, 1]
    x, y = R_ws[..., 0, 2], R_ws[..., 1, 2]
    length_squared = cosine.square() + sine.square()
    exists = length_squared > 1e-6
    safe = torch.where(exists, length_squared, torch.ones_like(cosine))
    row = torch.stack((-cosine * x - sine * y, sine * x - cosine * y, length_squared), dim=-1)
    return torch.where(exists, 1 / safe, torch.zeros_like(safe)).unsqueeze(-1) * row, exists


def remove_yaw(R_ws: Matrix3) -> Matrix3:
    """``R_gs = R_wgᵀ R_ws``: the attitude with its heading taken away, roll and pitch kept."""
    return yaw_rotation(R_ws).mT @ R_ws


def level(up_s: Vector) -> Matrix3:
    """``R_gs`` of least angle that takes a sensed upward direction to the vertical.

    ``up_s`` is what an accelerometer at rest measures, of any length but zero. Exactly upside
    down the half turn about the first axis is taken.
    """
    up = up_s / so3.length(up_s).unsqueeze(-1)
    x, y, z = up.unbind(-1)
    # 1 / (1 + z), which cancels near z = -1, is (1 - z) / (x² + y²) there.
    tiny = torch.finfo(up.dtype).tiny
    side = x * x + y * y
    upside_down = (z < 0) & (side < tiny)
    k = torch.where(z < 0, (1 - z) / side.clamp(min=tiny), 1 / (1 + z.clamp(min=0)))
    shortest = so3.matrix_of(1 - k * x * x, -k * x * y, -x, -k * x * y, 1 - k * y * y, -y, x, y, z)
    half_turn = torch.diag(torch.tensor([1.0, -1.0, -1.0], dtype=up.dtype, device=up.device))
    return torch.where(upside_down[..., None, None], half_turn, shortest)


def attitude_vectors(R_ws: Float[Tensor, "*batch 3 3"]) -> Float[Tensor, "*batch 3 3"]:
    """The world's axes seen from the sensor, ``f_i = R_wsᵀ e_i``, one vector a row (Eq. 21).

    Under a remount ``R_ws -> R_ws R_msᵀ`` each turns as a vector, ``f_i -> R_ms f_i``, which the
    rotation vector of R_ws itself does not.
    """
    return R_ws
