"""RoNIN's ResNet18: ResNet1D with one head, for the mean of a motion in the plane.

Architecture after Herath et al. (2020), with its 4,634,882 parameters. It has no covariance.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.geometry.so3 import identity_like
from ginio.models.checks import check_features
from ginio.models.resnet1d import ResNet1dConfig, build_head, build_residual, build_stem


@dataclass(frozen=True, kw_only=True)
class RoninConfig:
    """Shape of a RoNIN; the defaults are the published ones."""

    backbone: ResNet1dConfig = field(default_factory=ResNet1dConfig)
    outputs: int = 2
    """Components of the mean that are predicted: 2 leaves the vertical one at zero."""

    def __post_init__(self) -> None:
        if self.outputs not in {2, 3}:
            raise ValueError(f"outputs must be 2 or 3; found {self.outputs}")

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
        """None: its weights mix x, y and z."""
        return Symmetry.NONE

    @property
    def covariance_symmetry(self) -> Symmetry:
        """Σ is the identity, which looks the same from everywhere and says nothing."""
        return Symmetry.SO3

    def build(self) -> "Ronin":
        """The network with fresh weights."""
        return Ronin(self)


class Ronin(nn.Module):
    """Stem, residual groups and one head.

    With Σ the identity, its likelihood is the mean square error by which it was published.
    """

    def __init__(self, config: RoninConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = build_stem(config.backbone)
        self.residual = build_residual(config.backbone)
        self.mean = build_head(config.backbone, config.outputs)

    def forward(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Mean, coordinate axes, and unit standard deviations."""
        check_features(features, self.config.window, self.config.channels)
        h = self.residual(self.stem(features.flatten(1, 2)))
        mean = nn.functional.pad(self.mean(h), (0, 3 - self.config.outputs))
        return mean, identity_like(mean), torch.zeros_like(mean)
