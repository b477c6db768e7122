"""IMUNet: residual blocks of depthwise separable convolutions, made for phones.

Architecture after Zeinali et al. (2024), with its 3,661,618 parameters. Before its last layer a
learned multiple of the input itself is subtracted from the features, which ties it to one window.
Like RoNIN's it predicts a motion in the plane, and no covariance.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.core.window import IMU_CHANNELS
from ginio.geometry.so3 import identity_like
from ginio.models.checks import check_features

WINDOW = 200
STEM_CHANNELS = 64
GROUPS = ((64, 1), (128, 2), (256, 2), (512, 2), (1024, 2))
OUTPUT_CHANNELS = 400


@dataclass(frozen=True, kw_only=True)
class ImuNetConfig:
    """An IMUNet; nothing of its shape can be chosen but what it predicts."""

    window: int = WINDOW
    channels: int = IMU_CHANNELS
    outputs: int = 2
    """Components of the mean that are predicted: 2 leaves the vertical one at zero."""

    def __post_init__(self) -> None:
        if (self.window, self.channels) != (WINDOW, IMU_CHANNELS):
            raise ValueError(
                f"window and channels must be {WINDOW} and {IMU_CHANNELS}: features and input "
                f"have the same size nowhere else; found {self.window} and {self.channels}"
            )
        if self.outputs not in {2, 3}:
            raise ValueError(f"outputs must be 2 or 3; found {self.outputs}")

    @property
    def mean_symmetry(self) -> Symmetry:
        """None: its weights mix x, y and z."""
        return Symmetry.NONE

    @property
    def covariance_symmetry(self) -> Symmetry:
        """Σ is the identity, which looks the same from everywhere and says nothing."""
        return Symmetry.SO3

    def build(self) -> "ImuNet":
        """The network with fresh weights."""
        return ImuNet(self)


class SeparableBlock(nn.Module):
    """A convolution of each channel and a mixing of channels, beside a skip."""

    def __init__(
        self, channels_in: int, channels_out: int, *, stride: int, has_shortcut: bool
    ) -> None:
        super().__init__()
        self.separable = nn.Sequential(
            nn.Conv1d(channels_in, channels_in, 3, stride, 1, groups=channels_in, bias=False),
            nn.BatchNorm1d(channels_in),
            nn.ELU(),
            nn.Conv1d(channels_in, channels_out, 1, bias=False),
            nn.BatchNorm1d(channels_out),
            nn.ELU(),
        )
        if has_shortcut:
            self.shortcut = nn.Sequential(
                nn.Conv1d(channels_in, channels_out, 1, stride, bias=False),
                nn.BatchNorm1d(channels_out),
            )
        else:
            self.shortcut = nn.Identity()

    def forward(
        self, x: Float[Tensor, "batch channel_in time_in"]
    ) -> Float[Tensor, "batch channel_out time_out"]:
        """Features of the next layer."""
        return nn.functional.elu(self.separable(x) + self.shortcut(x))


class InputSubtraction(nn.Module):
    """``features - W ⊙ input + b``, both flattened: the authors' way to take noise away."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, size))
        self.offset = nn.Parameter(torch.zeros(1, size))

    def forward(
        self, x: Float[Tensor, "batch feature"], raw: Float[Tensor, "batch feature"]
    ) -> Float[Tensor, "batch feature"]:
        """Features without their share of the input."""
        return x - self.weight * raw + self.offset


class ImuNet(nn.Module):
    """Stem, separable blocks, a last convolution, and one linear layer.

    With Σ the identity, its likelihood is the mean square error by which it was published.
    """

    def __init__(self, config: ImuNetConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = nn.Sequential(
            nn.Conv1d(3 * config.channels, STEM_CHANNELS, 7, 2, padding=3, bias=False),
            nn.BatchNorm1d(STEM_CHANNELS),
            nn.ReLU(),
            nn.MaxPool1d(3, 2, padding=1),
        )
        blocks = [
            SeparableBlock(STEM_CHANNELS, STEM_CHANNELS, stride=1, has_shortcut=False)
            for _ in range(2)
        ]
        channels = STEM_CHANNELS
        for width, stride in GROUPS:
            blocks.append(SeparableBlock(channels, width, stride=stride, has_shortcut=True))
            blocks.append(SeparableBlock(width, width, stride=1, has_shortcut=False))
            channels = width
        self.blocks = nn.Sequential(*blocks)
        self.narrow = nn.Sequential(
            nn.Conv1d(channels, OUTPUT_CHANNELS, 2), nn.BatchNorm1d(OUTPUT_CHANNELS)
        )
        size = 3 * config.channels * config.window
        self.subtraction = InputSubtraction(size)
        self.mean = nn.Linear(size, config.outputs)

    def forward(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Mean, coordinate axes, and unit standard deviations."""
        check_features(features, self.config.window, self.config.channels)
        h = self.narrow(self.blocks(self.stem(features.flatten(1, 2))))
        h = nn.functional.elu(self.subtraction(h.flatten(1), features.flatten(1)))
        mean = nn.functional.pad(self.mean(h), (0, 3 - self.config.outputs))
        return mean, identity_like(mean), torch.zeros_like(mean)
