"""How a network errs: within bounds, and much the same from one window to the next.

Windows overlap. A window of one second that ends 50 ms after another shares 95 % of its samples
with it, and most of its error. Taken as independent, twenty windows a second would tell the filter
the same thing twenty times. Instead of a larger covariance, which makes innovations too small and
still grows certain too quickly, the common part of the error is a state with a memory.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.core.measurement import Covariance
from ginio.geometry.so3 import Matrix3


@dataclass(frozen=True, slots=True)
class Split:
    """Covariance of the part of the error that is new, and root of the part that is common."""

    white: Matrix3
    root: Matrix3


@dataclass(frozen=True, kw_only=True)
class NetworkError:
    """``m = h(x) + Σ^½ (√(1 - w) u + √w n)``: n is new in every window, u fades with time.

    u is a Gauss-Markov process of unit variance in the last sensor frame, so that it turns with
    the sensor and knows no world.
    """

    correlation_s: float = 0.0
    """Time in which the common error falls to 1/e; zero if windows err independently."""
    white_share: float = 0.1
    """w, the share of the variance that is new in every window, where errors are correlated."""
    factor: float = 1.0
    """On every covariance. TLIO takes 10 in place of a correlation; ours is for comparison."""
    smallest_std: float = 1e-3
    """Along each principal axis, in the unit of the measurement."""
    largest_std: float = 1e3

    def __post_init__(self) -> None:
        if self.correlation_s < 0 or not 0 < self.white_share <= 1 or self.factor <= 0:
            raise ValueError(
                "correlation_s must not be negative, white_share in (0, 1] and factor positive; "
                f"found {self.correlation_s}, {self.white_share}, {self.factor}"
            )
        if not 0 < self.smallest_std <= self.largest_std:
            raise ValueError(
                "smallest_std must be positive and not above largest_std; found "
                f"{self.smallest_std}, {self.largest_std}"
            )

    @property
    def stationary(self) -> float:
        """Variance of the common error."""
        return 1.0 if self.correlation_s > 0 else 0.0

    def memory(self, duration: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Correlation of the common error over a duration."""
        if self.correlation_s == 0:
            return torch.zeros_like(duration)
        return torch.exp(-duration / self.correlation_s)

    def split(self, covariance: Covariance, log_inflation: Float[Tensor, "*batch"]) -> Split:
        """Both parts of a covariance, within bounds along its own axes and then inflated.

        Entries of Σ are never bounded: that would depend on the frame.
        """
        axes = covariance.axes.to(log_inflation)
        std = covariance.log_std.to(log_inflation).exp()
        std = std.clamp(self.smallest_std, self.largest_std)
        variance = std.square() * (self.factor * log_inflation.exp()).unsqueeze(-1)
        new = self.white_share if self.correlation_s > 0 else 1.0
        return Split(
            white=axes * (new * variance).unsqueeze(-2) @ axes.mT,
            root=axes * ((1 - new) * variance).sqrt().unsqueeze(-2) @ axes.mT,
        )
