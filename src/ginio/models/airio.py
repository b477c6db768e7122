"""AirIO: convolutions and bidirectional GRUs on body-frame samples, and on attitude if it is given.

Architecture after Qiu et al. (2025): 330,598 parameters without attitude, 387,014 with it. As
published, the network with attitude holds 32,736 parameters that nothing ever uses; they are kept
under a name that says so, so that its size is the published one.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.core.window import ATTITUDE_CHANNELS, IMU_CHANNELS
from ginio.geometry import so3
from ginio.geometry.so3 import identity_like
from ginio.models.checks import check_features, labelled_samples

KERNEL, STRIDE = 7, 3
SAMPLES_PER_OUTPUT = STRIDE**2
ENCODER = (32, 64)
HIDDEN = (64, 128)
DECODER = 128
LOG_VARIANCE_OFFSET = -5.0


@dataclass(frozen=True, kw_only=True)
class AirIoConfig:
    """An AirIO, without attitude or with it."""

    window: int = 200
    channels: int = IMU_CHANNELS
    """Vector channels of the features: 2, or 5 with attitude."""
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if self.window <= SAMPLES_PER_OUTPUT:
            raise ValueError(
                f"window must be more than {SAMPLES_PER_OUTPUT} samples; found {self.window}"
            )
        if self.channels not in {IMU_CHANNELS, IMU_CHANNELS + ATTITUDE_CHANNELS}:
            raise ValueError(
                f"channels must be {IMU_CHANNELS}, or {IMU_CHANNELS + ATTITUDE_CHANNELS} with "
                f"attitude; found {self.channels}"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1); found {self.dropout}")

    @property
    def has_attitude(self) -> bool:
        """Whether the attitude of each sample is among the features."""
        return self.channels > IMU_CHANNELS

    @property
    def mean_symmetry(self) -> Symmetry:
        """None: its weights mix x, y and z."""
        return Symmetry.NONE

    @property
    def covariance_symmetry(self) -> Symmetry:
        """None."""
        return Symmetry.NONE

    def build(self) -> "AirIo":
        """The network with fresh weights."""
        return AirIo(self)


class AirIo(nn.Module):
    """Encoder, two bidirectional recurrent layers, and decoders of mean and variance."""

    def __init__(self, config: AirIoConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = build_encoder(3 * IMU_CHANNELS, config.dropout)
        if config.has_attitude:
            self.attitude_encoder = build_encoder(3, config.dropout)
            self.fusion = nn.Linear(2 * ENCODER[-1], ENCODER[-1])
            self.fusion_norm = nn.BatchNorm1d(ENCODER[-1])
            self.never_used = nn.ModuleDict(
                {
                    "encoder": build_encoder(3 * IMU_CHANNELS, config.dropout),
                    "fusion": nn.Linear(2 * ENCODER[-1], 2 * ENCODER[-1]),
                    "norm": nn.BatchNorm1d(2 * ENCODER[-1]),
                }
            )
        first, second = HIDDEN
        self.gru1 = nn.GRU(ENCODER[-1], first, batch_first=True, bidirectional=True)
        self.gru2 = nn.GRU(2 * first, second, batch_first=True, bidirectional=True)
        self.mean = build_decoder(2 * second)
        self.log_variance = build_decoder(2 * second)

    def forward(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Mean, coordinate axes and log standard deviations at the window's end.

        A few of the first samples may be dropped, so that the last output falls on the last sample.
        The last output but one is read: it is the first whose label, as published, is the last
        sample; at the very end the backward direction has seen nothing.
        """
        check_features(features, self.config.window, self.config.channels)
        h = self.encode(features[..., self.surplus :])[:, -2]
        log_std = self._log_std(h)
        return self.mean(h), identity_like(log_std), log_std

    def sequence(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[
        Float[Tensor, "batch output 3"],
        Float[Tensor, "batch output 3 3"],
        Float[Tensor, "batch output 3"],
    ]:
        """A measurement for every nine samples of a sequence of any length: 112 for 1000."""
        h = self.encode(features)
        log_std = self._log_std(h)
        return self.mean(h), identity_like(log_std), log_std

    @property
    def surplus(self) -> int:
        """First samples of a window that are dropped."""
        return (self.config.window - 1) % SAMPLES_PER_OUTPUT

    @property
    def labels(self) -> tuple[int, ...]:
        """The samples of a window whose motion its outputs tell, as published."""
        return labelled_samples(self.config.window, self.surplus)

    def regularised_sequence(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[
        Float[Tensor, "batch output 3"],
        Float[Tensor, "batch output 3 3"],
        Float[Tensor, "batch output 3"],
        Float[Tensor, " batch"],
    ]:
        """A measurement for each label of a window, and no penalty."""
        mean, axes, log_std = self.sequence(features[..., self.surplus :])
        return mean, axes, log_std, torch.zeros_like(mean[:, 0, 0])

    def encode(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> Float[Tensor, "batch output feature"]:
        """What the decoders see."""
        h = self.encoder(features[:, :IMU_CHANNELS].flatten(1, 2))
        if self.config.has_attitude:
            attitude = self.attitude_encoder(rotation_vectors(features[:, IMU_CHANNELS:]))
            h = self.fusion(torch.cat((h, attitude), dim=1).mT).mT
            h = nn.functional.gelu(self.fusion_norm(h))
        h, _ = self.gru1(h.mT)
        return self.gru2(h)[0]

    def _log_std(self, h: Float[Tensor, "*batch feature"]) -> Float[Tensor, "*batch 3"]:
        return 0.5 * (self.log_variance(h) + LOG_VARIANCE_OFFSET)


def rotation_vectors(
    seen_s: Float[Tensor, "batch 3 3 time"],
) -> Float[Tensor, "batch 3 time"]:
    """The logarithm of each sample's attitude, whose rows are the world's axes as seen from it.

    This is the input AirIO has. It is no vector: when the sensor turns, it does not turn with it.
    """
    return so3.log(seen_s.movedim(-1, 1)).mT


def build_encoder(channels_in: int, dropout: float) -> nn.Sequential:
    """Two convolutions, each of which keeps every third sample."""
    layers: list[nn.Module] = []
    for a, b in pairwise((channels_in, *ENCODER)):
        layers += [nn.Conv1d(a, b, KERNEL, STRIDE, KERNEL // 2), nn.BatchNorm1d(b), nn.GELU()]
    return nn.Sequential(*layers, nn.Dropout(dropout))


def build_decoder(channels: int) -> nn.Sequential:
    """A perceptron of each output's features."""
    return nn.Sequential(nn.Linear(channels, DECODER), nn.GELU(), nn.Linear(DECODER, 3))
