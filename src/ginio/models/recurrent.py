"""GINIO-A: AirIO's convolutions and bidirectional recurrent layers on vector channels.

A sequence of samples gives a sequence of measurements, one for every nine samples. A window gives
the measurement at its end.

The widths keep AirIO's proportions. The paper prints two sizes and no widths: 3/4 of AirIO's with a
decoder of 90 has 273,012 parameters (0.273M), 5/16 with a decoder of 28 has 45,014 (0.045M). With
attitude they have 504 and 210 more; departures add as many again as the inputs have.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.core.window import ACC_CHANNEL, IMU_CHANNELS, imu_channels
from ginio.geometry.frames import GRAVITY_MPS2
from ginio.models.checks import check_choice, check_features, labelled_samples
from ginio.nn.heads import DiagonalCovariance, SpectralCovariance
from ginio.nn.linear import VectorConv, VectorLinear
from ginio.nn.nonlinear import DirectionalReLU, VectorBracket
from ginio.nn.norm import NormKind, VectorDepartures, VectorDropout, build_norm
from ginio.nn.recurrent import VectorGRU

CovarianceKind = Literal["diagonal", "spectral"]
Outputs = Float[Tensor, "output batch 3 feature"]
Measurements = tuple[
    Float[Tensor, "batch output 3"],
    Float[Tensor, "batch output 3 3"],
    Float[Tensor, "batch output 3"],
]

KERNEL, STRIDE = 7, 3
SAMPLES_PER_OUTPUT = STRIDE**2


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Shape of a GINIO-A; the defaults are the paper's larger one.

    A causal network looks at no sample that comes after its answer: it has one direction, and its
    convolutions look back. It can be fed as samples come.
    """

    window: int = 200
    channels: int = IMU_CHANNELS
    """Vector channels of the features, as a representation has them."""
    encoder: tuple[int, int] = (24, 48)
    hidden: tuple[int, ...] = (48, 96)
    decoder: int = 90
    norm: NormKind = "scale"
    covariance: CovarianceKind = "diagonal"
    determinant_correction: bool = False
    """Whether the spectral axes are made a rotation, as the paper does."""
    has_departures: bool = False
    """Whether beside each channel stands its departure from its mean over the window."""
    is_causal: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.window <= SAMPLES_PER_OUTPUT:
            raise ValueError(
                f"window must be more than {SAMPLES_PER_OUTPUT} samples; found {self.window}"
            )
        if min(self.channels, *self.encoder, *self.hidden, self.decoder) < 1 or not self.hidden:
            raise ValueError(
                "channels, encoder, hidden and decoder must be widths of at least 1; found "
                f"{self.channels}, {self.encoder}, {self.hidden}, {self.decoder}"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1); found {self.dropout}")
        check_choice("norm", self.norm, NormKind)
        check_choice("covariance", self.covariance, CovarianceKind)
        if self.is_causal and self.norm == "layer":
            raise ValueError("a causal network cannot have norm 'layer': it averages over all time")
        if self.is_causal and self.has_departures:
            raise ValueError("a causal network cannot have departures: their mean is over all time")

    @property
    def mean_symmetry(self) -> Symmetry:
        """Every feature is a vector, so the mean turns as one."""
        return Symmetry.SO3

    @property
    def covariance_symmetry(self) -> Symmetry:
        """The spectral head's axes turn; the diagonal head's stay."""
        return Symmetry.SO3 if self.covariance == "spectral" else Symmetry.NONE

    def build(self) -> "RecurrentNetwork":
        """The network with fresh weights."""
        return RecurrentNetwork(self)


@dataclass(frozen=True, slots=True)
class Memory:
    """What a causal network keeps between samples."""

    samples: tuple[Float[Tensor, "batch _ 3 kept"], ...]
    """The last inputs of each convolution."""
    states: tuple[Float[Tensor, "batch 3 _"], ...]
    """The state of each recurrent layer."""


class EncoderStage(nn.Module):
    """A convolution that keeps every third sample, and a directional ReLU."""

    def __init__(self, channels_in: int, channels_out: int, norm: NormKind) -> None:
        super().__init__()
        self.conv = VectorConv(channels_in, channels_out, KERNEL, stride=STRIDE, padding=0)
        self.norm = build_norm(norm, channels_out)
        self.activation = DirectionalReLU(channels_out)

    def forward(
        self, x: Float[Tensor, "batch channel_in 3 time_in"]
    ) -> Float[Tensor, "batch channel_out 3 time_out"]:
        """Features at a third of the rate, of samples that have their neighbours with them."""
        return self.activation(self.norm(self.conv(x)))


class Decoder(nn.Sequential):
    """A perceptron of each output's channels, giving a few vectors."""

    def __init__(self, channels: int, hidden: int, outputs: int) -> None:
        super().__init__(
            VectorLinear(channels, hidden),
            DirectionalReLU(hidden, leak=0.1),
            VectorLinear(hidden, outputs),
        )


class RecurrentNetwork(nn.Module):
    """Convolutions, one bracket, recurrent layers, and a decoder for each part of a measurement.

    Without the bracket nothing in it would tell a window from its negative, and no acceleration
    could be understood as ``ω × v``.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.inputs = VectorDepartures() if config.has_departures else nn.Identity()
        inputs = 2 * config.channels if config.has_departures else config.channels
        widths = (inputs, *config.encoder)
        stages = [EncoderStage(a, b, config.norm) for a, b in pairwise(widths)]
        with torch.no_grad():  # Fresh weights expect specific force of the size of gravity.
            force = slice(ACC_CHANNEL, imu_channels(config.channels), IMU_CHANNELS)
            stages[0].conv.weight[:, force] /= GRAVITY_MPS2
        self.encoder = nn.ModuleList(stages)
        self.bracket = VectorBracket(widths[-1])
        self.dropout = VectorDropout(config.dropout)
        self.recurrent = nn.ModuleList()
        channels = widths[-1]
        for hidden in config.hidden:
            layer = VectorGRU(channels, hidden, is_bidirectional=not config.is_causal)
            self.recurrent.append(layer)
            channels = layer.channels_out
        self.mean = Decoder(channels, config.decoder, 1)
        if config.covariance == "spectral":
            self.covariance_vectors = Decoder(channels, config.decoder, 3)
            self.covariance = SpectralCovariance(
                determinant_correction=config.determinant_correction
            )
        else:
            self.covariance_vectors = Decoder(channels, config.decoder, 1)
            self.covariance = DiagonalCovariance()

    def forward(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Mean, axes and log standard deviations at the window's end (Eq. 1)."""
        mean, vectors = self.vectors(features)
        return mean, *self.covariance(vectors)

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

    def vectors(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch output 3"]]:
        """The mean at the window's end, and the vectors from which its covariance is made.

        A few of the first samples may be dropped, so that the last output falls on the last sample.
        Of two directions the last output but one is read: it is the first whose label, in AirIO's
        alignment, is the last sample; at the very end the backward direction has seen nothing.
        """
        check_features(features, self.config.window, self.config.channels)
        h = self.encode(features[..., self.surplus :])
        for layer in self.recurrent:
            h = layer(h)
        mean, vectors = self.decode(h[-1:] if self.config.is_causal else h[-2:-1])
        return mean.squeeze(1), vectors.squeeze(1)

    @property
    def surplus(self) -> int:
        """First samples of a window that are dropped."""
        window = self.config.window
        return (window if self.config.is_causal else window - 1) % SAMPLES_PER_OUTPUT

    @property
    def labels(self) -> tuple[int, ...]:
        """The samples of a window whose motion its outputs tell.

        Of a causal network, the newest that each has seen; else AirIO's.
        """
        window, surplus = self.config.window, self.surplus
        if self.config.is_causal:
            return tuple(range(surplus + SAMPLES_PER_OUTPUT - 1, window, SAMPLES_PER_OUTPUT))
        return labelled_samples(window, surplus)

    def regularised_sequence(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[
        Float[Tensor, "batch output 3"],
        Float[Tensor, "batch output 3 3"],
        Float[Tensor, "batch output 3"],
        Float[Tensor, " batch"],
    ]:
        """A measurement for each label of a window, and the penalty averaged over them."""
        h = self.encode(features[..., self.surplus :])
        for layer in self.recurrent:
            h = layer(h)
        mean, vectors = self.decode(h)
        axes, log_std = self.covariance(vectors.flatten(0, 1))
        outputs = mean.shape[:2]
        penalty = self.covariance.penalty(vectors.flatten(0, 1)).unflatten(0, outputs)
        return mean, axes.unflatten(0, outputs), log_std.unflatten(0, outputs), penalty.mean(1)

    def sequence(self, features: Float[Tensor, "batch channel 3 time"]) -> Measurements:
        """A measurement for every nine samples of a sequence of any length.

        Of two directions, one for each started nine and around its first sample, as AirIO's: 112
        for 1000. Of a causal network, one for each complete nine and at its last sample.
        """
        h = self.encode(features)
        for layer in self.recurrent:
            h = layer(h)
        return self.measurements(h)

    def rest(self, batch: int) -> Memory:
        """The memory of a causal network before the first sample."""
        if not self.config.is_causal:
            raise ValueError("only a causal network can be fed as samples come")
        zeros = next(self.parameters()).new_zeros
        widths = (self.config.channels, *self.config.encoder[:-1])
        return Memory(
            tuple(zeros(batch, width, 3, KERNEL - STRIDE) for width in widths),
            tuple(zeros(batch, 3, hidden) for hidden in self.config.hidden),
        )

    def go_on(
        self, features: Float[Tensor, "batch channel 3 time"], memory: Memory
    ) -> tuple[Measurements, Memory]:
        """The measurements of some more nines of samples, and the memory after them."""
        if features.shape[-1] % SAMPLES_PER_OUTPUT:
            raise ValueError(
                f"samples come by multiples of {SAMPLES_PER_OUTPUT}; found {features.shape[-1]}"
            )
        samples: list[Tensor] = []
        states: list[Tensor] = []
        x = features
        for stage, kept in zip(self.encoder, memory.samples, strict=True):
            x = torch.cat((kept, x), dim=-1)
            samples.append(x[..., STRIDE - KERNEL :])
            x = stage(x)
        h = to_sequence(self.bracket(x))
        for layer, state in zip(self.recurrent, memory.states, strict=True):
            h = layer(h, state)
            states.append(h[-1])
        return self.measurements(h), Memory(tuple(samples), tuple(states))

    def encode(self, features: Float[Tensor, "batch channel 3 time"]) -> Outputs:
        """What the recurrent layers see."""
        x = self.inputs(features)
        around = (KERNEL - STRIDE, 0) if self.config.is_causal else (KERNEL // 2, KERNEL // 2)
        for stage in self.encoder:
            x = stage(nn.functional.pad(x, around))
        return to_sequence(self.dropout(self.bracket(x)))

    def decode(
        self, h: Outputs
    ) -> tuple[Float[Tensor, "batch output 3"], Float[Tensor, "batch output vector 3"]]:
        """Means, and the vectors from which covariances are made."""
        x = h.permute(1, 3, 2, 0)
        return self.mean(x).squeeze(1).mT, self.covariance_vectors(x).permute(0, 3, 1, 2)

    def measurements(self, h: Outputs) -> Measurements:
        """The measurement of each output of the recurrent layers."""
        mean, vectors = self.decode(h)
        axes, log_std = self.covariance(vectors.flatten(0, 1))
        return mean, axes.unflatten(0, mean.shape[:2]), log_std.unflatten(0, mean.shape[:2])


def to_sequence(
    x: Float[Tensor, "batch channel 3 time"],
) -> Float[Tensor, "time batch 3 channel"]:
    """Time first and channels last, as recurrent layers take them."""
    return x.permute(3, 0, 2, 1).contiguous()
