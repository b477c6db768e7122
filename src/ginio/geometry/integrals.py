"""Integrals of the exponential: what a vector fixed to a steadily turning frame adds up to.

A frame turns at the rate φ for a unit of time. A vector a that stands still in it has, seen from
where the frame began, the integral ``Γ1(φ) a`` and the double integral ``Γ2(φ) a``, with

``Γn(φ) = Σ hat(φ)^k / (k + n)!``,

so Γ0 is the rotation itself and Γ1 its left Jacobian. Derivation: docs/derivations/filters.md.
"""

import math
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.so3 import Matrix3, Vector

# Six series in θ², f_n = Σ (-θ²)^k / (2k + n)!, used below one radian; f_1 is sin θ / θ.
ORDERS = 6
TERMS = 9
SERIES = tuple(
    tuple((-1) ** k / math.factorial(2 * k + n) for n in range(1, ORDERS + 1)) for k in range(TERMS)
)


@cache
def _series(dtype: torch.dtype, device: torch.device) -> Float[Tensor, "term 6"]:
    # Made once, and outside of inference mode, so that it serves with gradients as without.
    with torch.inference_mode(mode=False):
        return torch.tensor(SERIES, dtype=dtype, device=device)


def coefficients(angle_squared: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch 6"]:
    """``f_1 ... f_6``, smooth through zero; ``f_(n+2) = (1/n! - f_n) / θ²``."""
    small, x, t2 = so3.split_small(angle_squared)
    powers = x.unsqueeze(-1).expand(*x.shape, TERMS - 1).cumprod(-1)
    table = _series(x.dtype, x.device)
    series = table[0] + powers @ table[1:]
    t = t2.sqrt()
    closed = [torch.sin(t) / t, (1 - torch.cos(t)) / t2]
    for n in range(1, ORDERS - 1):
        closed.append((1 / math.factorial(n) - closed[n - 1]) / t2)
    return torch.where(small.unsqueeze(-1), series, torch.stack(closed, dim=-1))


@dataclass(frozen=True, slots=True)
class Turning:
    """``Γ0, Γ1, Γ2`` of a rotation vector, and what its derivatives need besides."""

    gamma_0: Matrix3
    gamma_1: Matrix3
    gamma_2: Matrix3
    phi: Vector
    _hat: Matrix3
    _f: Float[Tensor, "*batch 6 1 1"]

    def derivatives(self, a: Vector) -> tuple[Matrix3, Matrix3]:
        """Of ``Γ1(φ) a`` and ``Γ2(φ) a`` by φ.

        They rest on ``2 df_n/dθ² = n f_(n+2) - f_(n+1)`` and, with k and h for the skew matrices
        of φ and a, on ``d(φ × (φ × a)) = (h k - 2 k h) dφ``.
        """
        f2, f3, f4, f5, f6 = self._f.unbind(-3)[1:]
        k, h = self._hat, so3.hat(a)
        once = k @ a.unsqueeze(-1)
        by_once, by_twice = h @ k, k @ h
        second = by_once - 2 * by_twice
        row = self.phi.unsqueeze(-2)
        along_once, along_twice = once * row, (k @ once) * row
        slope_2, slope_3, slope_4 = 2 * f4 - f3, 3 * f5 - f4, 4 * f6 - f5
        return (
            f3 * second - f2 * h + slope_2 * along_once + slope_3 * along_twice,
            f4 * second - f3 * h + slope_3 * along_once + slope_4 * along_twice,
        )


def turning(phi: Vector) -> Turning:
    """The integrals of a steady turn by a rotation vector."""
    f = coefficients(phi.square().sum(-1))[..., None, None]
    f1, f2, f3, f4 = f.unbind(-3)[:4]
    k = so3.hat(phi)
    kk = k @ k
    eye = torch.eye(3, dtype=phi.dtype, device=phi.device)
    return Turning(
        gamma_0=eye + f1 * k + f2 * kk,
        gamma_1=eye + f2 * k + f3 * kk,
        gamma_2=0.5 * eye + f3 * k + f4 * kk,
        phi=phi,
        _hat=k,
        _f=f,
    )


def running_products(R: Float[Tensor, "*batch time 3 3"]) -> Float[Tensor, "*batch time 3 3"]:
    """``R_0``, ``R_0 R_1``, ``R_0 R_1 R_2`` and so on, in a logarithmic number of steps."""
    products, step = R, 1
    while step < R.shape[-3]:
        before, after = products[..., :-step, :, :], products[..., step:, :, :]
        products = torch.cat((products[..., :step, :, :], before @ after), dim=-3)
        step *= 2
    return products
