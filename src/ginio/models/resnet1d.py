"""ResNet1D: the network of RoNIN and TLIO, the baseline without symmetry.

It treats the six components as six unrelated channels. Architecture after TLIO (Liu et al. 2020):
residual groups of basic blocks and two fully connected blocks, mean and diagonal log deviations.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.core.window import IMU_CHANNELS
from ginio.geometry.so3 import identity_like
from ginio.models.checks import check_features, check_shape


@dataclass(frozen=True, kw_only=True)
class ResNet1dConfig:
    """Shape of a ResNet1D; the defaults are TLIO's."""

    window: int = 200
    channels: int = IMU_CHANNELS
    """Vector channels of the features, as a representation has them."""
    stem_channels: int = 64
    groups: tuple[tuple[int, int], ...] = ((64, 2), (128, 2), (256, 2), (512, 2))
    head_narrow: int = 128
    head_hidden: int = 512
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_shape(self.window, self.channels, self.groups, self.dropout)

    @property
    def mean_symmetry(self) -> Symmetry:
        """None: its weights mix x, y and z."""
        return Symmetry.NONE

    @property
    def covariance_symmetry(self) -> Symmetry:
        """None."""
        return Symmetry.NONE

    @property
    def feature_times(self) -> int:
        """Samples that reach the heads."""
        return -(-self.window // 2 ** (len(self.groups) + 1))

    def build(self) -> "ResNet1d":
        """The network with fresh weights."""
        return ResNet1d(self)


class BasicBlock(nn.Module):
    """Two convolutions with batch normalisation beside a skip."""

    def __init__(self, channels_in: int, channels_out: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm1d(channels_out)
        self.conv2 = nn.Conv1d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm1d(channels_out)
        if stride == 1 and channels_in == channels_out:
            self.shortcut = nn.Identity()
        else:
            self.shortcut = nn.Sequential(
                nn.Conv1d(channels_in, channels_out, 1, stride, bias=False),
                nn.BatchNorm1d(channels_out),
            )

    def forward(
        self, x: Float[Tensor, "batch channel_in time_in"]
    ) -> Float[Tensor, "batch channel_out time_out"]:
        """Features of the next layer."""
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


class ResNet1d(nn.Module):
    """Stem, residual groups, and one fully connected block each for mean and log deviations."""

    def __init__(self, config: ResNet1dConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = build_stem(config)
        self.residual = build_residual(config)
        self.mean = build_head(config, 3)
        self.log_std = build_head(config, 3)

    def forward(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Mean, coordinate axes and log standard deviations."""
        check_features(features, self.config.window, self.config.channels)
        h = self.residual(self.stem(features.flatten(1, 2)))
        log_std = self.log_std(h)
        return self.mean(h), identity_like(log_std), log_std


def build_stem(config: ResNet1dConfig) -> nn.Sequential:
    """The first convolution, at a quarter of the rate."""
    return nn.Sequential(
        nn.Conv1d(3 * config.channels, config.stem_channels, 7, 2, padding=3, bias=False),
        nn.BatchNorm1d(config.stem_channels),
        nn.ReLU(),
        nn.MaxPool1d(3, 2, padding=1),
    )


def build_residual(config: ResNet1dConfig) -> nn.Sequential:
    """The residual groups, each but the first at half the rate of the one before."""
    channels = config.stem_channels
    layers: list[nn.Module] = []
    for group, (width, blocks) in enumerate(config.groups):
        for block in range(blocks):
            stride = 2 if group > 0 and block == 0 else 1
            layers.append(BasicBlock(channels, width, stride=stride))
            channels = width
    return nn.Sequential(*layers)


def build_head(config: ResNet1dConfig, outputs: int) -> nn.Sequential:
    """A fully connected block on all channels and times."""
    return nn.Sequential(
        nn.Conv1d(config.groups[-1][0], config.head_narrow, 1, bias=False),
        nn.BatchNorm1d(config.head_narrow),
        nn.Flatten(),
        nn.Linear(config.head_narrow * config.feature_times, config.head_hidden),
        nn.ReLU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.head_hidden, config.head_hidden),
        nn.ReLU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.head_hidden, outputs),
    )
