"""The left-invariant EKF on SE_2(3): errors are those of the pose as the sensor sees it.

Its propagation depends on the samples and not on the state, and a change of the world frame
changes nothing. A velocity in the sensor frame, what Last-Frame Alignment gives, is linear in its
errors up to the attitude.
"""

from dataclasses import dataclass

from ginio.filters.chart import InvariantChart
from ginio.filters.cloning import CloningFilter, FilterConfig


@dataclass(frozen=True, kw_only=True)
class InekfConfig(FilterConfig):
    """For networks that measure in the last sensor frame; corrections ``X̂ Exp(K r)`` (Eq. 13)."""

    def build(self) -> CloningFilter:
        """The filter."""
        return CloningFilter(self, InvariantChart())
