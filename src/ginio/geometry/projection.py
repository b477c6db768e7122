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
    solves ``Ω P + P Ω = VᵀdA - dAᵀV``, whose denominators are the sums ``p_i + p_j``. Derivation:
    docs/derivations/polar.md.
    """

    @staticmethod
    def forward(a: Tensor, proper: bool) -> tuple[Tensor, Tensor, Tensor]:  # noqa: FBT001 - autograd passes positionally
        svd = torch.linalg.svd(a)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - torch does not type it
        u, stretch, wt = cast("tuple[Tensor, Tensor, Tensor]", svd)
        if proper:
            handedness = torch.det(u @ wt).sign().unsqueeze(-1)
            flip = torch.cat((torch.ones_like(stretch[..., :2]), handedness), dim=-1)
            stretch = stretch * flip
            u = u * flip.unsqueeze(-2)
        return u @ wt, stretch, wt

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:  # noqa: ARG004 - autograd passes both
        v, stretch, wt = output
        ctx.mark_non_differentiable(stretch, wt)
        ctx.save_for_backward(v, stretch, wt)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator renames ctx
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor, None]:
        v, stretch, wt = ctx.saved_tensors
        x = wt @ v.mT @ grad_outputs[0] @ wt.mT
        sums = stretch.unsqueeze(-1) + stretch.unsqueeze(-2)
        largest = stretch.abs().amax(dim=-1, keepdim=True).unsqueeze(-1)
        floor = torch.finfo(v.dtype).eps ** 0.5 * largest.clamp(min=1)
        y = (x - x.mT) / torch.maximum(sums, floor)
        return v @ wt.mT @ y @ wt, None


def polar(a: Matrix3, *, proper: bool = True) -> Matrix3:
    """Orthogonal matrix nearest to A: ``V = U diag(1, 1, det(U Wᵀ)) Wᵀ`` (Eq. 35).

    Left-equivariant wherever A has full rank: ``polar(R A) == R polar(A)``. With ``proper`` off
    the determinant is not corrected and the result is in O(3), which serves as axes of a
    covariance just as well. Each form is smooth where the other jumps: the proper one across
    ``det A = 0``, the other where ``det A < 0`` and the two smaller singular values meet.

    The gradient is finite and bounded for every finite A: near the places where the derivative
    does not exist, its denominators are held at the root of the rounding error.
    """
    outputs = _Polar.apply(a, proper)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - nor this
    return cast("tuple[Tensor, ...]", outputs)[0]


def polar_newton_schulz(a: Matrix3, *, iterations: int = 20) -> Matrix3:
    """Orthogonal polar factor of A without an SVD, for targets that have none.

    Agrees with ``polar(a, proper=False)`` to rounding while the condition number of A is below
    about 20; only products and sums, so it exports everywhere.
    """
    largest = a.abs().amax((-2, -1)).clamp(min=torch.finfo(a.dtype).tiny)
    x = a / (3 * largest)[..., None, None]
    for _ in range(iterations):
        x = 1.5 * x - 0.5 * x @ x.mT @ x
    return x


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
