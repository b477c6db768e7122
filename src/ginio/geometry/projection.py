"""From three or two free vectors to a rotation: polar projection and Gram-Schmidt frames."""

from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from ginio.geometry import so3
from ginio.geometry.so3 import Matrix3, Scalar, Vector


class _Polar(torch.autograd.Function):
    """Nearest rotation with a backward that never divides by a difference.

    Autograd through the SVD divides by ``s_i - s_j`` although the projection itself does not
    depend on the choice of singular vectors. Writing ``A = V P`` with P symmetric, the derivative
    solves ``Ω P + P Ω = VᵀdA - dAᵀV``, which for skew Ω is the linear system of the vector ω in
    ``(tr P - P) ω``; its eigenvalues are the sums ``p_i + p_j``. Derivation:
    docs/derivations/polar.md.
    """

    @staticmethod
    def forward(a: Tensor, proper: bool) -> Tensor:  # noqa: FBT001 - autograd passes positionally
        # An accelerator's SVD waits for the host, which can then record no graph of a step.
        return polar_newton(a) if a.is_cuda and not proper else _polar_svd(a, proper=proper)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator renames ctx
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor, None]:
        a, v = ctx.saved_tensors
        stretch = v.mT @ a
        largest = stretch.abs().amax((-2, -1), keepdim=True).clamp(min=1)
        trace = stretch.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        sums = trace * so3.identity_like(a[..., 0]) - 0.5 * (stretch + stretch.mT)
        x = v.mT @ grad_outputs[0]
        return v @ so3.hat(_solved(sums / largest, 2 * so3.vee(x)) / largest[..., 0]), None


def _polar_svd(a: Matrix3, *, proper: bool) -> Matrix3:
    svd = torch.linalg.svd(a)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - torch does not type it
    u, _, wt = cast("tuple[Tensor, Tensor, Tensor]", svd)
    if proper:
        handedness = torch.det(u @ wt).sign()[..., None, None]
        u = torch.cat((u[..., :2], handedness * u[..., 2:]), dim=-1)
    return u @ wt


def _solved(m: Matrix3, k: Vector) -> Vector:
    """``m⁻¹ k`` by Cramer's rule; where m is nearly singular, no longer than ``|k| / √eps``."""
    adjugate = cofactors(m).mT
    determinant = (m * adjugate.mT).sum((-2, -1)) / 3
    size, limits = adjugate.square().sum((-2, -1)).sqrt(), torch.finfo(m.dtype)
    floor = (limits.eps**0.5 * size).clamp(min=limits.tiny)
    return so3.rotate(adjugate, k) / torch.maximum(determinant, floor).unsqueeze(-1)


def cofactors(m: Matrix3) -> Matrix3:
    """``det(M) M⁻ᵀ``, which exists for every M: cross products of its rows."""
    first, second, third = m.unbind(-2)
    rows = (
        torch.cross(second, third, dim=-1),
        torch.cross(third, first, dim=-1),
        torch.cross(first, second, dim=-1),
    )
    return torch.stack(rows, dim=-2)


def polar(a: Matrix3, *, proper: bool = True) -> Matrix3:
    """Orthogonal matrix nearest to A: ``V = U diag(1, 1, det(U Wᵀ)) Wᵀ`` (Eq. 35).

    Left-equivariant wherever A has full rank: ``polar(R A) == R polar(A)``. With ``proper`` off
    the determinant is not corrected and the result is in O(3), which serves as axes of a
    covariance just as well. Each form is smooth where the other jumps: the proper one across
    ``det A = 0``, the other where ``det A < 0`` and the two smaller singular values meet.

    The gradient is finite and bounded for every finite A: near the places where the derivative
    does not exist, its denominators are held at the root of the rounding error.
    """
    return cast("Tensor", _Polar.apply(a, proper))  # pyright: ignore[reportUnknownMemberType] - nor this


def polar_newton(a: Matrix3, *, iterations: int = 12) -> Matrix3:
    """Orthogonal polar factor of A without an SVD, for targets that have none or wait for it.

    Newton's ``X ← (γ X + X⁻ᵀ/γ) / 2``, scaled so that both terms are of one size (Higham 1986).
    With cofactors for the inverse it passes through rank two; twelve steps are enough for any
    condition number of float64. Agrees with ``polar(a, proper=False)``, and is orthogonal for every
    finite A.
    """
    limits = torch.finfo(a.dtype)
    x = a / a.abs().amax((-2, -1), keepdim=True).clamp(min=limits.tiny)
    x = x + 4 * limits.eps * so3.identity_like(a[..., 0])
    for _ in range(iterations):
        c = cofactors(x)
        gamma = (_size(c) / _size(x).clamp(min=limits.tiny)).sqrt()
        side = torch.where((x * c).sum((-2, -1), keepdim=True) < 0, -1.0, 1.0).to(a)
        x = gamma * x + side * c / gamma.clamp(min=limits.tiny)
        x = x * (3**0.5 / _size(x))
    return x


def _size(m: Matrix3) -> Float[Tensor, "*batch 1 1"]:
    return m.square().sum((-2, -1), keepdim=True).sqrt()


def non_degeneracy_penalty(a: Matrix3) -> Scalar:
    """``|AᵀA - I|²``: zero for orthonormal columns, and the same for A and R A.

    The regulariser of the spectral head: it keeps the three predicted vectors independent, and
    the condition number bounded, without preferring a direction.
    """
    gram = a.mT @ a
    return (gram - torch.eye(3, dtype=a.dtype, device=a.device)).square().sum((-2, -1))


def gram_schmidt(first: Vector, second: Vector, *, floor: float = 1e-6) -> Matrix3:
    """Right-handed frame of two vectors: normalise, project out, normalise, cross product.

    The columns are the frame's axes, so the frame of rotated vectors is the rotated frame. Norms
    are clamped at ``floor`` as the paper does; below it the columns are short, not invented.
    """
    e1 = first / _norm(first, floor)
    rest = second - (e1 * second).sum(-1, keepdim=True) * e1
    e2 = rest / _norm(rest, floor)
    return torch.stack((e1, e2, so3.rotate(so3.hat(e1), e2)), dim=-1)


def _norm(v: Vector, floor: float) -> Float[Tensor, "*batch 1"]:
    return v.square().sum(-1, keepdim=True).clamp(min=floor**2).sqrt()
