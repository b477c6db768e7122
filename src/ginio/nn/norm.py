"""Normalisation of vector channels by their lengths, equivariant in training and in use.

Scale-only normalisation divides lengths and leaves directions alone. Batch normalisation of
lengths also subtracts a mean: in training about half of its "lengths" are negative, which flips
vectors and blows short ones up to unit size. It is kept because the paper's networks use it.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.nn import algebra
from ginio.nn.algebra import VectorChannels

NormKind = Literal["scale", "layer", "batch"]
MOMENTUM = 0.1
EPS = 1e-5


class VectorBatchScaleNorm(nn.Module):
    """Each channel divided by the root mean square of its lengths over batch and time."""

    mean_square: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.register_buffer("mean_square", torch.ones(channels))

    def forward(self, x: VectorChannels) -> VectorChannels:
        """Normalised channels."""
        if self.training:
            mean_square = 3 * x.square().mean(dim=(0, 2, 3))
            self.mean_square.lerp_(mean_square.detach().to(self.mean_square.dtype), MOMENTUM)
        else:
            mean_square = self.mean_square
        factor = self.gain * torch.rsqrt(mean_square + EPS)
        return x * factor[:, None, None]


class VectorLayerScaleNorm(nn.Module):
    """Each sample divided by the root mean square length over its channels and time."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))

    def forward(self, x: VectorChannels) -> VectorChannels:
        """Normalised channels."""
        mean_square = 3 * x.square().mean(dim=(1, 2, 3), keepdim=True)
        return x * (torch.rsqrt(mean_square + EPS) * self.gain[:, None, None])


class VectorBatchNorm(nn.Module):
    """Batch normalisation of lengths, directions kept or flipped: ``x BN(|x|) / |x|``.

    As the authors' earlier networks have it.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lengths = nn.BatchNorm1d(channels)

    def forward(self, x: VectorChannels) -> VectorChannels:
        """Normalised channels."""
        length = algebra.norm(x) + EPS
        return algebra.scale(x, self.lengths(length) / length)


VectorNorm = VectorBatchScaleNorm | VectorLayerScaleNorm | VectorBatchNorm
_KINDS: dict[NormKind, type[VectorNorm]] = {
    "scale": VectorBatchScaleNorm,
    "layer": VectorLayerScaleNorm,
    "batch": VectorBatchNorm,
}


def build_norm(kind: NormKind, channels: int) -> VectorNorm:
    """A normalisation chosen by a config."""
    return _KINDS[kind](channels)


class VectorDepartures(nn.Module):
    """Each channel, and beside it its departure from its mean over the window.

    Thrust, gravity and biases are a hundred times the drag that tells a velocity. A network without
    symmetry sees through them by normalising each coordinate, which would prefer axes.
    """

    def forward(
        self, x: Float[Tensor, "batch channel_in 3 time"]
    ) -> Float[Tensor, "batch channel_out 3 time"]:
        """Channels, then their departures."""
        return torch.cat((x, x - x.mean(-1, keepdim=True)), dim=1)


class VectorDropout(nn.Module):
    """Drops whole vector channels: dropping single components would prefer axes."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: VectorChannels) -> VectorChannels:
        """Channels with some dropped for all time, the rest scaled up; identity in use."""
        if not self.training or self.probability == 0:
            return x
        kept = torch.empty_like(x[:, :, :1, :1]).bernoulli_(1 - self.probability)
        return x * kept / (1 - self.probability)


class VectorMeanPool(nn.Module):
    """Mean over neighbouring samples; a last group that is cut short is averaged over its own."""

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor

    def forward(
        self, x: Float[Tensor, "batch channel 3 time_in"]
    ) -> Float[Tensor, "batch channel 3 time_out"]:
        """Pooled channels, ``ceil(time / factor)`` samples."""
        return nn.functional.avg_pool2d(x, (1, self.factor), ceil_mode=True)
