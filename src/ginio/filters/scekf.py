"""The stochastic-cloning EKF: errors of velocity and position are differences in the world.

TLIO's filter, to which it is compared, has its attitude error on the world's side,
``R = exp(θ_w) R̂``; here it is on the sensor's, ``θ_w = R̂ θ``. To first order that is the same
filter: the covariances convert by R̂, and corrections differ by terms of the second order.
"""

from dataclasses import dataclass

from ginio.filters.chart import WorldChart
from ginio.filters.cloning import CloningFilter, FilterConfig


@dataclass(frozen=True, kw_only=True)
class ScekfConfig(FilterConfig):
    """For networks that measure in the world or in its heading."""

    def build(self) -> CloningFilter:
        """The filter."""
        return CloningFilter(self, WorldChart())
