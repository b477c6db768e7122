"""Rotations: SO(3) as 3x3 matrices, with leading batch axes everywhere.

Perturbations are on the right: ``R ⊞ δ = R exp(δ)``. Quaternions are Hamilton, sensor to world,
and exist only at the edge of the package; their component order is part of every name.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Vector = Float[Tensor, "*batch 3"]
Matrix3 = Float[Tensor, "*batch 3 3"]
Scalar = Float[Tensor, "*batch"]
Mask = Bool[Tensor, "*batch"]
Quaternion = Float[Tensor, "*batch 4"]


def matrix_of(*entries: Scalar) -> Matrix3:
    """3x3 matrices from nine entries in reading order."""
    return torch.stack(entries, dim=-1).reshape(*entries[0].shape, 3, 3)


def hat(v: Vector) -> Matrix3:
    """Skew matrix of a vector: ``hat(a) @ b == cross(a, b)``."""
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return matrix_of(o, -z, y, z, o, -x, -y, x, o)


def vee(m: Matrix3) -> Vector:
    """Vector of the skew part of a matrix: the inverse of `hat`."""
    return 0.5 * torch.stack(
        (
            m[..., 2, 1] - m[..., 1, 2],
            m[..., 0, 2] - m[..., 2, 0],
            m[..., 1, 0] - m[..., 0, 1],
        ),
        dim=-1,
    )


def length(v: Float[Tensor, "*batch n"]) -> Scalar:
    """Euclidean length along the last axis."""
    return v.square().sum(-1).sqrt()


def rotate(R: Float[Tensor, "*#batch 3 3"], v: Float[Tensor, "*#batch 3"]) -> Vector:
    """``R v`` for each rotation and vector of a batch."""
    return (R @ v.unsqueeze(-1)).squeeze(-1)


def identity_like(v: Vector) -> Matrix3:
    """Identity rotations with the batch, dtype and device of a batch of vectors."""
    return torch.eye(3, dtype=v.dtype, device=v.device).expand(*v.shape[:-1], 3, 3)


# Coefficients of power series in θ², used below one radian: nine terms reach float64 rounding.
SINC = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(9))
VERSINE = tuple((-1) ** k / math.factorial(2 * k + 2) for k in range(9))
REMAINDER = tuple((-1) ** k / math.factorial(2 * k + 3) for k in range(9))
INVERSE = tuple(2 * b - a for a, b in zip(SINC[1:], VERSINE[1:], strict=True))


def horner(x: Scalar, coefficients: tuple[float, ...]) -> Scalar:
    """Polynomial in x, coefficients by rising power."""
    total = torch.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def split_small(angle_squared: Scalar) -> tuple[Mask, Scalar, Scalar]:
    """Mask of small angles, their squares, and the squares of the others; 0 and 1 elsewhere.

    Arguments are made safe before a division and not after, because the branch that is not taken
    still contributes to the gradient.
    """
    small = angle_squared < 1
    return (
        small,
        torch.where(small, angle_squared, torch.zeros_like(angle_squared)),
        torch.where(small, torch.ones_like(angle_squared), angle_squared),
    )


def rodrigues_coefficients(angle_squared: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """``sin θ/θ``, ``(1 - cos θ)/θ²`` and ``(θ - sin θ)/θ³``, smooth through zero."""
    small, x, t2 = split_small(angle_squared)
    t = t2.sqrt()
    return (
        torch.where(small, horner(x, SINC), torch.sin(t) / t),
        torch.where(small, horner(x, VERSINE), (1 - torch.cos(t)) / t2),
        torch.where(small, horner(x, REMAINDER), (t - torch.sin(t)) / (t2 * t)),
    )


def exp(phi: Vector) -> Matrix3:
    """Rotation by the angle ``|phi|`` about the axis ``phi`` (Rodrigues)."""
    a, b, _ = rodrigues_coefficients(phi.square().sum(-1))
    k = hat(phi)
    return identity_like(phi) + a[..., None, None] * k + b[..., None, None] * (k @ k)


def log(R: Matrix3) -> Vector:
    """Rotation vector of a rotation, angle in [0, π], accurate on the whole group."""
    q = quaternion_wxyz_from_matrix(R)
    w, v = q[..., 0], q[..., 1:]
    s2 = v.square().sum(-1)
    tiny = s2 < 1e-8
    sine = torch.where(tiny, torch.ones_like(s2), s2).sqrt()
    w_safe = torch.where(tiny, w, torch.ones_like(w))
    series = 2 / w_safe * (1 - s2 / (3 * w_safe.square()))
    return torch.where(tiny, series, 2 * torch.atan2(sine, w) / sine).unsqueeze(-1) * v


def left_jacobian(phi: Vector) -> Matrix3:
    """J with ``exp(phi + δ) ≈ exp(J δ) exp(phi)``."""
    _, b, c = rodrigues_coefficients(phi.square().sum(-1))
    k = hat(phi)
    return identity_like(phi) + b[..., None, None] * k + c[..., None, None] * (k @ k)


def right_jacobian(phi: Vector) -> Matrix3:
    """J with ``exp(phi + δ) ≈ exp(phi) exp(J δ)``."""
    return left_jacobian(-phi)


def left_jacobian_inverse(phi: Vector) -> Matrix3:
    """Inverse of `left_jacobian`; singular only at full turns."""
    small, x, t2 = split_small(phi.square().sum(-1))
    a, b, _ = rodrigues_coefficients(phi.square().sum(-1))
    d = torch.where(small, horner(x, INVERSE), (2 * b - a) / t2) / (2 * b)
    k = hat(phi)
    return identity_like(phi) - 0.5 * k + d[..., None, None] * (k @ k)


def right_jacobian_inverse(phi: Vector) -> Matrix3:
    """Inverse of `right_jacobian`: ``log(R exp(δ)) ≈ log(R) + J⁻¹ δ``."""
    return left_jacobian_inverse(-phi)


def retract(R: Matrix3, delta: Vector) -> Matrix3:
    """``R ⊞ δ = R exp(δ)``."""
    return R @ exp(delta)


def local(R: Matrix3, R_other: Matrix3) -> Vector:
    """``R_other ⊟ R``: the δ with ``retract(R, δ) == R_other``."""
    return log(R.mT @ R_other)


def geodesic_angle(R_a: Float[Tensor, "*#batch 3 3"], R_b: Float[Tensor, "*#batch 3 3"]) -> Scalar:
    """Angle between two rotations in [0, π], accurate at both ends."""
    q = quaternion_wxyz_from_matrix(R_a.mT @ R_b)
    return 2 * torch.atan2(length(q[..., 1:]), q[..., 0].abs())


def random(
    count: int,
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Float[Tensor, "count 3 3"]:
    """Rotations uniform in the Haar measure."""
    q = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    return matrix_from_quaternion_wxyz(q).to(dtype=dtype, device=device)


def random_with_angle(
    count: int,
    angle: float,
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Float[Tensor, "count 3 3"]:
    """Rotations by one angle about axes uniform on the sphere: frame errors (Eq. 41)."""
    axis = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    return exp(angle * axis / length(axis).unsqueeze(-1)).to(dtype=dtype, device=device)


def about_z(yaw: Scalar) -> Matrix3:
    """Rotation about the third axis by an angle in radians."""
    c, s, o, i = yaw.cos(), yaw.sin(), torch.zeros_like(yaw), torch.ones_like(yaw)
    return matrix_of(c, -s, o, s, c, o, o, o, i)


def matrix_from_quaternion_wxyz(q_wxyz: Quaternion) -> Matrix3:
    """Rotation of a quaternion, scalar first; any non-zero length is accepted."""
    w, x, y, z = (q_wxyz / length(q_wxyz).unsqueeze(-1)).unbind(-1)
    return matrix_of(
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    )


def quaternion_wxyz_from_matrix(R: Matrix3) -> Quaternion:
    """Unit quaternion of a rotation, scalar first and not negative.

    Four multiples of the same quaternion can be read off a rotation matrix; the longest is never
    shorter than half its norm, so no branch divides by a small number.
    """
    (r00, r01, r02), (r10, r11, r12), (r20, r21, r22) = (row.unbind(-1) for row in R.unbind(-2))
    multiples = torch.stack(
        (
            torch.stack((1 + r00 + r11 + r22, r21 - r12, r02 - r20, r10 - r01), dim=-1),
            torch.stack((r21 - r12, 1 + r00 - r11 - r22, r10 + r01, r02 + r20), dim=-1),
            torch.stack((r02 - r20, r10 + r01, 1 - r00 + r11 - r22, r21 + r12), dim=-1),
            torch.stack((r10 - r01, r02 + r20, r21 + r12, 1 - r00 - r11 + r22), dim=-1),
        ),
        dim=-2,
    )
    longest = multiples.diagonal(dim1=-2, dim2=-1).argmax(dim=-1)
    index = longest[..., None, None].expand(*longest.shape, 1, 4)
    q = multiples.gather(-2, index).squeeze(-2)
    q = q / length(q).unsqueeze(-1)
    return torch.where(q[..., :1] < 0, -q, q)


def matrix_from_quaternion_xyzw(q_xyzw: Quaternion) -> Matrix3:
    """Rotation of a quaternion, scalar last; any non-zero length is accepted."""
    return matrix_from_quaternion_wxyz(q_xyzw.roll(1, dims=-1))


def quaternion_xyzw_from_matrix(R: Matrix3) -> Quaternion:
    """Unit quaternion of a rotation, scalar last and not negative."""
    return quaternion_wxyz_from_matrix(R).roll(-1, dims=-1)
