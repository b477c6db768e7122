"""Extended poses: SE_2(3) as 5x5 matrices of attitude, velocity and position.

Coordinates are ordered (rotation, velocity, position), each of three; the invariant error of the
paper's filter is ``X̂⁻¹ X`` and its correction acts on the right.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.so3 import Matrix3, Vector

ExtendedPose = Float[Tensor, "*batch 5 5"]
Twist = Float[Tensor, "*batch 9"]


def pack(R: Matrix3, v: Vector, p: Vector) -> ExtendedPose:
    """``[[R, v, p], [0, 1, 0], [0, 0, 1]]``."""
    top = torch.cat((R, v.unsqueeze(-1), p.unsqueeze(-1)), dim=-1)
    bottom = torch.eye(5, dtype=R.dtype, device=R.device)[3:].expand(*R.shape[:-2], 2, 5)
    return torch.cat((top, bottom), dim=-2)


def unpack(x: ExtendedPose) -> tuple[Matrix3, Vector, Vector]:
    """Attitude, velocity and position."""
    return x[..., :3, :3], x[..., :3, 3], x[..., :3, 4]


def exp(xi: Twist) -> ExtendedPose:
    """Exponential map: ``(exp φ, J φ_v, J φ_p)`` with the left Jacobian J of φ."""
    phi, v, p = xi[..., :3], xi[..., 3:6], xi[..., 6:]
    jacobian = so3.left_jacobian(phi)
    return pack(so3.exp(phi), so3.rotate(jacobian, v), so3.rotate(jacobian, p))


def log(x: ExtendedPose) -> Twist:
    """Inverse of `exp`, rotation angle in [0, π]."""
    R, v, p = unpack(x)
    phi = so3.log(R)
    inverse_jacobian = so3.left_jacobian_inverse(phi)
    return torch.cat(
        (phi, so3.rotate(inverse_jacobian, v), so3.rotate(inverse_jacobian, p)), dim=-1
    )


def inverse(x: ExtendedPose) -> ExtendedPose:
    """Inverse element, without solving a system."""
    R, v, p = unpack(x)
    return pack(R.mT, -so3.rotate(R.mT, v), -so3.rotate(R.mT, p))


def compose(x: ExtendedPose, y: ExtendedPose) -> ExtendedPose:
    """Group product."""
    return x @ y


def adjoint(x: ExtendedPose) -> Float[Tensor, "*batch 9 9"]:
    """Ad with ``X exp(ξ) X⁻¹ = exp(Ad ξ)``."""
    R, v, p = unpack(x)
    o = torch.zeros_like(R)
    rows = (
        torch.cat((R, o, o), dim=-1),
        torch.cat((so3.hat(v) @ R, R, o), dim=-1),
        torch.cat((so3.hat(p) @ R, o, R), dim=-1),
    )
    return torch.cat(rows, dim=-2)


def retract(x: ExtendedPose, delta: Twist) -> ExtendedPose:
    """``X̂⁺ = X̂ Exp(δ)``: the correction on the right, with δ = K r (Eq. 13)."""
    return x @ exp(delta)


def local(x: ExtendedPose, y: ExtendedPose) -> Twist:
    """``Log(X⁻¹ Y)``: the δ with ``retract(X, δ) == Y``, the left-invariant error."""
    return log(inverse(x) @ y)
