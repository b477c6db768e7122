"""Whether a covariance is honest: likelihood and its parts, NEES, coverage."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.core.measurement import Covariance


@dataclass(frozen=True, slots=True)
class NllParts:
    """The two halves of the likelihood; their sum is the NLL (Eq. 38)."""

    mahalanobis: Float[Tensor, " window"]
    log_det: Float[Tensor, " window"]


def nll_parts(covariance: Covariance, residual: Float[Tensor, "window 3"]) -> NllParts:
    """``½ eᵀ Σ⁻¹ e`` and ``½ log det Σ`` of each window."""
    return NllParts(0.5 * covariance.nees(residual), 0.5 * covariance.log_det())


def chi2_3_cdf(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Distribution of χ² with three degrees of freedom, in closed form."""
    return torch.erf((x / 2).sqrt()) - (2 * x / torch.pi).sqrt() * torch.exp(-x / 2)


def calibration_factor(nees: Float[Tensor, " window"]) -> Float[Tensor, ""]:
    """The factor on Σ that makes residuals likeliest: of ``½ n/f + 3/2 log f`` the minimum."""
    return nees.mean() / 3


def coverage(
    covariance: Covariance,
    residual: Float[Tensor, "window 3"],
    level: Float[Tensor, " level"],
) -> Float[Tensor, " level"]:
    """Fraction of residuals inside the ellipsoid that should hold each ``level`` of them."""
    probability = chi2_3_cdf(covariance.nees(residual))
    return (probability.unsqueeze(0) <= level.unsqueeze(1)).to(residual.dtype).mean(dim=1)
