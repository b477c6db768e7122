"""GINIO-R: the ResNet-style network on vector channels, with diagonal (RD) or spectral (RS) Σ."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.core.window import ACC_CHANNEL, IMU_CHANNELS
from ginio.geometry.frames import GRAVITY_MPS2
from ginio.models.checks import check_choice, check_features, check_shape
from ginio.nn.heads import DiagonalCovariance, SpectralCovariance, VectorHead
from ginio.nn.linear import VectorConv
from ginio.nn.nonlinear import DirectionalReLU, VectorBracket
from ginio.nn.norm import NormKind, VectorDepartures, VectorMeanPool, build_norm

CovarianceKind = Literal["diagonal", "spectral"]


@dataclass(frozen=True, kw_only=True)
class TemporalConfig:
    """Shape of a GINIO-R; the defaults are the paper's but for its normalisation.

    ``groups`` lists (channels, blocks) of each residual group; time is halved by the stem, by a
    pool before each group, by the first convolution of each group but the first, and by a pool
    before the heads.
    """

    window: int = 200
    channels: int = IMU_CHANNELS
    """Vector channels of the features, as a representation has them."""
    groups: tuple[tuple[int, int], ...] = ((21, 2), (170, 2))
    norm: NormKind = "scale"
    has_departures: bool = False
    """Whether beside each channel stands its departure from its mean over the window."""
    has_block_brackets: bool = False
    """Whether vectors meet in cross products in every block, or only in the stem."""
    covariance: CovarianceKind = "spectral"
    determinant_correction: bool = False
    """Whether the spectral axes are made a rotation, as the paper does."""
    head_narrow: int = 42
    head_hidden: int = 170
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_shape(self.window, self.channels, self.groups, self.dropout)
        check_choice("norm", self.norm, NormKind)
        check_choice("covariance", self.covariance, CovarianceKind)

    @property
    def mean_symmetry(self) -> Symmetry:
        """Every feature is a vector, so the mean turns as one."""
        return Symmetry.SO3

    @property
    def covariance_symmetry(self) -> Symmetry:
        """The spectral head's axes turn; the diagonal head's stay."""
        return Symmetry.SO3 if self.covariance == "spectral" else Symmetry.NONE

    @property
    def feature_times(self) -> int:
        """Samples that reach the heads."""
        halvings = 2 * len(self.groups) + 1
        return -(-self.window // 2**halvings)

    def build(self) -> "TemporalNetwork":
        """The network with fresh weights."""
        return TemporalNetwork(self)


class ResidualBlock(nn.Module):
    """Two convolutions beside a skip; the same directional ReLU serves inside and after."""

    def __init__(
        self, channels_in: int, channels_out: int, *, stride: int, config: TemporalConfig
    ) -> None:
        super().__init__()
        norm = config.norm
        self.conv1 = VectorConv(channels_in, channels_out, 3, stride=stride)
        self.norm1 = build_norm(norm, channels_out)
        self.conv2 = VectorConv(channels_out, channels_out, 3)
        self.norm2 = build_norm(norm, channels_out)
        self.activation = DirectionalReLU(channels_out)
        brackets = config.has_block_brackets
        self.bracket = VectorBracket(channels_out) if brackets else nn.Identity()
        if stride == 1 and channels_in == channels_out:
            self.shortcut = nn.Identity()
        else:
            self.shortcut = nn.Sequential(
                VectorConv(channels_in, channels_out, 1, stride=stride),
                build_norm(norm, channels_out),
            )

    def forward(
        self, x: Float[Tensor, "batch channel_in 3 time_in"]
    ) -> Float[Tensor, "batch channel_out 3 time_out"]:
        """Features of the next layer."""
        h = self.bracket(self.activation(self.norm1(self.conv1(x))))
        return self.activation(self.norm2(self.conv2(h)) + self.shortcut(x))


class TemporalNetwork(nn.Module):
    """Stem with one bracket, residual groups, and a head for each part of the measurement.

    Every intermediate feature is a vector channel, so the mean obeys the law by construction; so
    does Σ with the spectral head (Eq. 3).
    """

    def __init__(self, config: TemporalConfig) -> None:
        super().__init__()
        self.config = config
        self.inputs = VectorDepartures() if config.has_departures else nn.Identity()
        self.stem, self.residual = self._build_backbone(config)
        self.mean = self._build_head(config)
        if config.covariance == "spectral":
            self.covariance_vectors = nn.ModuleList(self._build_head(config) for _ in range(3))
            self.covariance = SpectralCovariance(
                determinant_correction=config.determinant_correction
            )
        else:
            self.covariance_vectors = nn.ModuleList([self._build_head(config)])
            self.covariance = DiagonalCovariance()

    @staticmethod
    def _build_backbone(config: TemporalConfig) -> tuple[nn.Sequential, nn.Sequential]:
        channels = config.groups[0][0]
        inputs = 2 * config.channels if config.has_departures else config.channels
        first = VectorConv(inputs, channels, 7, stride=2)
        with torch.no_grad():  # Fresh weights expect specific force of the size of gravity.
            first.weight[:, ACC_CHANNEL : config.channels : IMU_CHANNELS] /= GRAVITY_MPS2
        stem = nn.Sequential(
            first,
            build_norm(config.norm, channels),
            DirectionalReLU(channels),
            VectorBracket(channels),
        )
        layers: list[nn.Module] = []
        for group, (width, blocks) in enumerate(config.groups):
            layers.append(VectorMeanPool(2))
            for block in range(blocks):
                stride = 2 if group > 0 and block == 0 else 1
                layers.append(ResidualBlock(channels, width, stride=stride, config=config))
                channels = width
        layers.append(VectorMeanPool(2))
        return stem, nn.Sequential(*layers)

    @staticmethod
    def _build_head(config: TemporalConfig) -> VectorHead:
        return VectorHead(
            config.groups[-1][0],
            config.feature_times,
            1,
            narrow=config.head_narrow,
            hidden=config.head_hidden,
            norm=config.norm,
            dropout=config.dropout,
        )

    def forward(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Mean, axes and log standard deviations (Eq. 1)."""
        mean, vectors = self.vectors(features)
        return mean, *self.covariance(vectors)

    def vectors(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch output 3"]]:
        """The mean, and the vectors from which the covariance is made."""
        check_features(features, self.config.window, self.config.channels)
        h = self.residual(self.stem(self.inputs(features)))
        return self.mean(h).squeeze(1), torch.cat([head(h) for head in self.covariance_vectors], 1)

    def regularised(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[
        Float[Tensor, "batch 3"],
        Float[Tensor, "batch 3 3"],
        Float[Tensor, "batch 3"],
        Float[Tensor, " batch"],
    ]:
        """As `forward`, with the penalty that keeps the spectral head's vectors independent."""
        mean, vectors = self.vectors(features)
        axes, log_std = self.covariance(vectors)
        return mean, axes, log_std, self.covariance.penalty(vectors)
