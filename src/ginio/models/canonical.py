"""GINIO-E: a network without symmetry, put to work in a frame that turns with the window.

Two predicted vectors make a frame R_F by Gram-Schmidt. In that frame the window looks the same
however the sensor is mounted, so any network may read it there; its answer is turned back. The
vectors come from a GINIO-RD, which predicts just two. With TLIO's ResNet1D that is 5,995,773
parameters; the paper prints 6.03M.
"""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.geometry import so3
from ginio.geometry.projection import gram_schmidt
from ginio.models.airio import AirIoConfig
from ginio.models.resnet1d import ResNet1dConfig
from ginio.models.temporal import TemporalConfig


def _two_vectors() -> TemporalConfig:
    return TemporalConfig(covariance="diagonal", norm="layer", has_departures=True)


@dataclass(frozen=True, kw_only=True)
class CanonicalConfig:
    """A network that predicts a frame, and one that works in it."""

    frame: TemporalConfig = field(default_factory=_two_vectors)
    backbone: ResNet1dConfig | AirIoConfig = field(default_factory=ResNet1dConfig)

    def __post_init__(self) -> None:
        frame = (self.frame.window, self.frame.channels)
        backbone = (self.backbone.window, self.backbone.channels)
        if frame != backbone:
            raise ValueError(
                "frame and backbone must have the same window and channels; found "
                f"{frame} and {backbone}"
            )
        if self.frame.covariance != "diagonal":
            raise ValueError(
                "frame must predict two vectors, as covariance 'diagonal' does; "
                f"found {self.frame.covariance!r}"
            )

    @property
    def window(self) -> int:
        """Samples in a window."""
        return self.backbone.window

    @property
    def channels(self) -> int:
        """Vector channels of the features."""
        return self.backbone.channels

    @property
    def mean_symmetry(self) -> Symmetry:
        """The frame turns with the window, and the mean with the frame."""
        return Symmetry.SO3

    @property
    def covariance_symmetry(self) -> Symmetry:
        """So do the axes of Σ."""
        return Symmetry.SO3

    def build(self) -> "CanonicalNetwork":
        """The network with fresh weights."""
        return CanonicalNetwork(self)


class CanonicalNetwork(nn.Module):
    """There and back: ``m̂ = R_F m̂_c`` and ``Σ̂ = R_F Σ̂_c R_Fᵀ`` (Eq. 22).

    From ``R_F(R x) = R R_F(x)`` it follows that the window in the frame does not change, and that
    the answer turns with the window (Eq. 23). Where the two vectors are nearly parallel, the frame
    turns fast, and rounding with it.
    """

    def __init__(self, config: CanonicalConfig) -> None:
        super().__init__()
        self.config = config
        self.frame = config.frame.build()
        self.backbone = config.backbone.build()

    def forward(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Mean, axes and log standard deviations."""
        first, second = self.frame.vectors(features)
        R_fc = gram_schmidt(first, second.squeeze(1))
        mean_c, axes_c, log_std = self.backbone(R_fc.mT.unsqueeze(1) @ features)
        return so3.rotate(R_fc, mean_c), R_fc @ axes_c, log_std
