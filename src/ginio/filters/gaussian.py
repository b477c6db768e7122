"""The Kalman update: innovation, gain, gate, and the covariance that follows."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

DOF = 3


@dataclass(frozen=True, slots=True)
class Innovation:
    """What a measurement said beyond what was expected, and whether it was believed."""

    residual: Float[Tensor, "*batch 3"]
    S: Float[Tensor, "*batch 3 3"]
    """Covariance of the residual if everything is honest."""
    nis: Float[Tensor, "*batch"]
    """``rᵀ S⁻¹ r``; 3 on average if everything is honest, NaN where nothing was measured."""
    usable: Bool[Tensor, "*batch"]
    """Finite, new, and of clones that still exist."""
    accepted: Bool[Tensor, "*batch"]

    @property
    def rejected(self) -> Bool[Tensor, "*batch"]:
        """Usable, and kept out by the gate."""
        return self.usable & ~self.accepted


@dataclass(frozen=True, slots=True)
class Gain:
    """The linear algebra of one update, before anything is decided."""

    K: Float[Tensor, "*batch n 3"]
    cross: Float[Tensor, "*batch n 3"]
    """``P Hᵀ``."""
    innovation: Innovation


def chi_square_cdf(x: float) -> float:
    """Probability that the squared length of a standard normal vector, 3 dof, is below x."""
    return math.erf(math.sqrt(x / 2)) - math.sqrt(2 * x / math.pi) * math.exp(-x / 2)


def gate_threshold(probability: float) -> float:
    """The x below which an honest ``rᵀ S⁻¹ r`` (3 dof) stays with a probability.

    0.99 gives 11.345. One closes no gate at all.
    """
    if not 0 < probability <= 1:
        raise ValueError(f"gate probability must be in (0, 1]; found {probability}")
    if probability == 1:
        return math.inf
    low, high = 0.0, 1e3
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chi_square_cdf(middle) < probability else (low, middle)
    return high


def gain(
    P: Float[Tensor, "*batch n n"],
    H: Float[Tensor, "*batch 3 n"],
    residual: Float[Tensor, "*batch 3"],
    noise: Float[Tensor, "*batch 3 3"],
    usable: Bool[Tensor, "*batch"],
    threshold: float,
) -> Gain:
    """Innovation and gain ``K = P Hᵀ S⁻¹`` by a Cholesky factor of S.

    Where a number is not finite or S is not positive, the measurement is not usable and the gain
    is zero.
    """
    cross = P @ H.mT
    S = H @ cross + noise
    S = 0.5 * (S + S.mT)
    finite = torch.isfinite(S).all((-2, -1)) & torch.isfinite(residual).all(-1)
    eye = torch.eye(DOF, dtype=S.dtype, device=S.device)
    safe = torch.where((usable & finite)[..., None, None], S, eye)
    L, failed = torch.linalg.cholesky_ex(safe)
    usable = usable & finite & (failed == 0)
    L = torch.where(usable[..., None, None], L, eye)
    r = torch.where(usable.unsqueeze(-1), residual, torch.zeros_like(residual))
    white = torch.linalg.solve_triangular(L, r.unsqueeze(-1), upper=False)
    nis = white.square().sum((-2, -1))
    accepted = usable & (nis <= threshold)
    K = torch.cholesky_solve(cross.mT, L).mT
    nis = torch.where(usable, nis, torch.full_like(nis, math.nan))
    return Gain(K, cross, Innovation(r, S, nis, usable, accepted))


def correct(
    P: Float[Tensor, "*batch n n"], found: Gain, accepted: Bool[Tensor, "*batch"]
) -> Float[Tensor, "*batch n"]:
    """Correction ``K r``; P becomes ``(I - K H) P (I - K H)ᵀ + K R Kᵀ`` in place, where accepted.

    Joseph's form multiplied out is ``P - K C - (K C)ᵀ + K S Kᵀ`` with ``C = H P``, of rank six
    and with the same tolerance of a gain that is not exact, at a cost of n² instead of n³.
    """
    mask = accepted[..., None, None]
    K = torch.where(mask, found.K, torch.zeros_like(found.K))
    S = torch.where(mask, found.innovation.S, torch.zeros_like(found.innovation.S))
    half = torch.where(mask, found.cross, torch.zeros_like(found.cross)) - 0.5 * K @ S
    left, right = torch.cat((K, half), dim=-1), torch.cat((half, K), dim=-1)
    left, right = (x.reshape(-1, *x.shape[-2:]) for x in (left, right))
    P.view(-1, *P.shape[-2:]).baddbmm_(left, right.mT, alpha=-1)
    return (K @ found.innovation.residual.unsqueeze(-1)).squeeze(-1)
