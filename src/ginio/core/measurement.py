"""What a network says of a motion: a vector and its covariance, and how both change frame."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.so3 import Matrix3, Scalar, Vector


class Quantity(Enum):
    """The motion a measurement speaks of."""

    DISPLACEMENT = "displacement"
    """From the window's first sample to its last, metres."""
    VELOCITY = "velocity"
    """At the window's last sample, metres per second."""


@dataclass(frozen=True, slots=True)
class Covariance:
    """``Σ = V diag(exp 2λ) Vᵀ``, kept factored (Eq. 6, 22, 36).

    One type for every head: the spectral head predicts the axes, the diagonal head fixes them to
    the coordinate axes, a canonicalized network takes its frame. Kept factored, likelihood and
    whitening need neither an inverse nor a determinant, and Σ is positive by construction.
    """

    axes: Matrix3
    log_std: Vector

    def __post_init__(self) -> None:
        if self.axes.shape != (*self.log_std.shape, 3) or self.log_std.shape[-1:] != (3,):
            raise ValueError(
                "covariance axes and log_std must be (..., 3, 3) and (..., 3); found "
                f"{tuple(self.axes.shape)} and {tuple(self.log_std.shape)}"
            )

    @classmethod
    def from_matrix(cls, sigma: Matrix3) -> "Covariance":
        """Factor a covariance matrix.

        Raises:
            ValueError: the matrix is not finite, not symmetric or not positive definite. It is
                not repaired: whoever made it has a fault to find.
        """
        if sigma.shape[-2:] != (3, 3):
            raise ValueError(f"covariance must be (..., 3, 3); found {tuple(sigma.shape)}")
        if not bool(torch.isfinite(sigma).all()):
            raise ValueError("covariance has an entry that is not finite")
        scale = sigma.abs().amax((-2, -1))
        asymmetry = (sigma - sigma.mT).abs().amax((-2, -1))
        tolerance = 32 * torch.finfo(sigma.dtype).eps
        if bool((asymmetry > tolerance * scale).any()):
            worst = float((asymmetry / scale).max())
            raise ValueError(f"covariance must be symmetric; relative asymmetry {worst:.3g}")
        eigh = torch.linalg.eigh(sigma)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - torch does not type it
        eigenvalues, axes = cast("tuple[Tensor, Tensor]", eigh)
        if bool((eigenvalues <= 0).any()):
            smallest = float(eigenvalues.min())
            raise ValueError(
                f"covariance must be positive definite; smallest eigenvalue {smallest:.6g}"
            )
        return cls(axes, 0.5 * eigenvalues.log())

    @property
    def std(self) -> Vector:
        """Standard deviations along the axes."""
        return self.log_std.exp()

    def matrix(self) -> Matrix3:
        """Σ itself (Eq. 6, 36)."""
        root = self.axes * self.std.unsqueeze(-2)
        return root @ root.mT

    def whiten(self, residual: Vector) -> Vector:
        """``diag(exp -λ) Vᵀ e``: unit variance, uncorrelated, if Σ is honest."""
        return torch.exp(-self.log_std) * so3.rotate(self.axes.mT, residual)

    def nees(self, residual: Vector) -> Scalar:
        """``eᵀ Σ⁻¹ e``, the squared Mahalanobis length; 3 on average if Σ is honest."""
        return self.whiten(residual).square().sum(-1)

    def log_det(self) -> Scalar:
        """``log det Σ``."""
        return 2 * self.log_std.sum(-1)

    def nll(self, residual: Vector) -> Scalar:
        """``½ eᵀ Σ⁻¹ e + ½ log det Σ``, the paper's likelihood without its constant (Eq. 38)."""
        return 0.5 * self.nees(residual) + 0.5 * self.log_det()

    def sample(self, *, generator: torch.Generator | None = None) -> Vector:
        """One draw from N(0, Σ) for each covariance of the batch."""
        unit = torch.empty_like(self.log_std).normal_(generator=generator)
        return so3.rotate(self.axes, self.std * unit)

    def to(self, device: torch.device | str) -> "Covariance":
        """The same on another device."""
        return Covariance(self.axes.to(device), self.log_std.to(device))

    def rotated(self, R_af: Float[Tensor, "*#batch 3 3"]) -> "Covariance":
        """``R Σ Rᵀ``: the same uncertainty in frame a (Eq. 9, 29, 37)."""
        axes = R_af @ self.axes
        return Covariance(axes, self.log_std.expand(axes.shape[:-1]))

    def scaled(self, factor: float) -> "Covariance":
        """Σ of the quantity times ``factor``; units change, axes stay."""
        if factor <= 0:
            raise ValueError(f"factor must be positive; found {factor}")
        return Covariance(self.axes, self.log_std + math.log(factor))


@dataclass(frozen=True, slots=True)
class Measurement:
    """``(m, Σ)``: the output of the interface (Eq. 1)."""

    mean: Vector
    covariance: Covariance
    quantity: Quantity

    def __post_init__(self) -> None:
        if self.mean.shape != self.covariance.log_std.shape:
            raise ValueError(
                "mean and covariance must have the same batch; found "
                f"{tuple(self.mean.shape)} and {tuple(self.covariance.axes.shape)}"
            )

    def to(self, device: torch.device | str) -> "Measurement":
        """The same on another device."""
        return Measurement(self.mean.to(device), self.covariance.to(device), self.quantity)

    def rotated(self, R_af: Float[Tensor, "*#batch 3 3"]) -> "Measurement":
        """``(R m, R Σ Rᵀ)``: the interface law as one method (Eq. 2, 3, 8, 22, 23, 27, 28, 31)."""
        return Measurement(
            so3.rotate(R_af, self.mean), self.covariance.rotated(R_af), self.quantity
        )

    def split(self, sizes: Sequence[int]) -> list["Measurement"]:
        """Parts of a batch, one after the other."""
        ends = list(accumulate(sizes))
        return [self._part(slice(end - size, end)) for size, end in zip(sizes, ends, strict=True)]

    def _part(self, rows: slice) -> "Measurement":
        c = self.covariance
        return Measurement(
            self.mean[rows], Covariance(c.axes[rows], c.log_std[rows]), self.quantity
        )

    def residual(self, expected: Vector) -> Vector:
        """``m̂ - h(x)``, whose covariance is Σ if the state x is true (Eq. 12)."""
        return self.mean - expected
