"""EqNIO: a learned heading on gravity-aligned samples, in which TLIO's ResNet1D works.

Architecture after Jayanth et al. (2025). A network on horizontal vectors and invariant scalars
predicts a horizontal frame. Under O(2) (6,020,230 parameters) the frame may be a mirror, and the
angular rate, which is an axial vector, goes in as two polar ones; under SO(2) (8,884,870 with 128
channels) each vector comes with itself turned by a right angle.

Its symmetry ends at the vertical: it must be told which way is up.
"""

from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.interfaces import Symmetry
from ginio.core.window import ACC_CHANNEL, GYR_CHANNEL, IMU_CHANNELS
from ginio.geometry import so3
from ginio.models.checks import check_choice, check_features
from ginio.models.resnet1d import ResNet1dConfig

Group = Literal["O(2)", "SO(2)"]
Horizontal = Float[Tensor, "batch channel 2 time"]
Scalars = Float[Tensor, "batch scalar time"]
Samples = Float[Tensor, "batch 3 time"]

KERNEL = 32
FLOOR = 1e-6
VECTORS: dict[Group, int] = {"O(2)": 3, "SO(2)": 2}
SCALARS: dict[Group, int] = {"O(2)": 9, "SO(2)": 5}


@dataclass(frozen=True, kw_only=True)
class EqNioConfig:
    """Shape of an EqNIO; the defaults are the published O(2) network on TLIO."""

    group: Group = "O(2)"
    hidden: int = 64
    """Vector channels, and scalar ones, of the network that predicts the frame."""
    depth: int = 2
    backbone: ResNet1dConfig = field(default_factory=ResNet1dConfig)

    def __post_init__(self) -> None:
        check_choice("group", self.group, Group)
        if self.hidden < 1 or self.depth < 1:
            raise ValueError(
                f"hidden and depth must be at least 1; found {self.hidden} and {self.depth}"
            )
        if self.backbone.channels != IMU_CHANNELS:
            raise ValueError(
                f"backbone must have {IMU_CHANNELS} vector channels; found {self.backbone.channels}"
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
        """What leaves the vertical where it is."""
        return Symmetry.O2 if self.group == "O(2)" else Symmetry.SO2

    @property
    def covariance_symmetry(self) -> Symmetry:
        """The same: its axes are those of the frame."""
        return self.mean_symmetry

    def build(self) -> "EqNio":
        """The network with fresh weights."""
        return EqNio(self)


class HorizontalLinear(nn.Module):
    """A temporal convolution with scalar weights; under SO(2) also of each vector's right angle.

    Time is padded with its first and last value.
    """

    def __init__(self, channels_in: int, channels_out: int, group: Group, *, kernel: int) -> None:
        super().__init__()
        self.has_right_angles = group == "SO(2)"
        factor = 2 if self.has_right_angles else 1
        self.conv = nn.Conv2d(factor * channels_in, channels_out, (1, kernel), bias=False)
        self.padding = ((kernel - 1) // 2, kernel // 2, 0, 0)

    def forward(self, x: Horizontal) -> Float[Tensor, "batch channel_out 2 time"]:
        """Mixed channels."""
        if self.has_right_angles:
            x = torch.cat((x, right_angle(x)), dim=1)
        return self.conv(nn.functional.pad(x, self.padding, mode="replicate"))


class ScalarLinear(nn.Module):
    """A temporal convolution of scalars, time padded with its first and last value."""

    def __init__(self, channels_in: int, channels_out: int, *, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels_in, channels_out, kernel, bias=False)
        self.padding = ((kernel - 1) // 2, kernel // 2)

    def forward(self, x: Scalars) -> Float[Tensor, "batch scalar_out time"]:
        """Mixed channels."""
        return self.conv(nn.functional.pad(x, self.padding, mode="replicate"))


class ScalarNorm(nn.Module):
    """Layer normalisation over channels with gains and no offsets."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))

    def forward(self, x: Scalars) -> Scalars:
        """Normalised channels."""
        return nn.functional.layer_norm(x.mT, self.gain.shape, self.gain).mT


class HorizontalNorm(nn.Module):
    """The same of vector lengths; directions are kept, or flipped where a length is negative."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lengths = ScalarNorm(channels)

    def forward(self, x: Horizontal) -> Horizontal:
        """Normalised channels."""
        return unit(x, 2) * self.lengths(length(x, 2).squeeze(2)).unsqueeze(2)


class Gate(nn.Module):
    """New lengths and scalars from a perceptron layer of lengths and scalars."""

    def __init__(self, vectors: int, scalars: int, scalars_out: int) -> None:
        super().__init__()
        self.vectors = vectors
        self.linear = ScalarLinear(vectors + scalars, vectors + scalars_out, kernel=1)
        self.norm = ScalarNorm(vectors + scalars_out)

    def forward(
        self, vectors: Horizontal, scalars: Scalars
    ) -> tuple[Horizontal, Float[Tensor, "batch scalar_out time"]]:
        """Vectors of old directions and new lengths, and scalars."""
        x = torch.cat((length(vectors, 2).squeeze(2), scalars), dim=1)
        x = self.norm(torch.relu(self.linear(x)))
        return unit(vectors, 2) * x[:, : self.vectors].unsqueeze(2), x[:, self.vectors :]


class FrameBlock(nn.Module):
    """A convolution of vectors and scalars, their gate, and norms."""

    def __init__(self, hidden: int, group: Group) -> None:
        super().__init__()
        self.vectors = HorizontalLinear(hidden, hidden, group, kernel=KERNEL)
        self.scalars = ScalarLinear(hidden, hidden, kernel=KERNEL)
        self.gate = Gate(hidden, hidden, hidden)
        self.vector_norm = HorizontalNorm(hidden)
        self.scalar_norm = ScalarNorm(hidden)

    def forward(self, vectors: Horizontal, scalars: Scalars) -> tuple[Horizontal, Scalars]:
        """Features of the next layer."""
        vectors, scalars = self.gate(self.vectors(vectors), self.scalars(scalars))
        return self.vector_norm(vectors), self.scalar_norm(scalars)


class FrameNetwork(nn.Module):
    """From horizontal vectors and scalars to two horizontal vectors."""

    def __init__(self, group: Group, hidden: int, depth: int) -> None:
        super().__init__()
        self.vectors_in = HorizontalLinear(VECTORS[group], hidden, group, kernel=1)
        self.scalars_in = ScalarLinear(SCALARS[group], hidden, kernel=1)
        self.gate_in = Gate(hidden, hidden, hidden)
        self.blocks = nn.ModuleList(FrameBlock(hidden, group) for _ in range(depth))
        self.vectors_pooled = HorizontalLinear(hidden, hidden, group, kernel=1)
        self.scalars_pooled = ScalarLinear(hidden, hidden, kernel=1)
        self.gate_pooled = Gate(hidden, hidden, 0)
        self.vectors_mixed = HorizontalLinear(hidden, hidden, group, kernel=1)
        self.norm = HorizontalNorm(hidden)
        self.out = HorizontalLinear(hidden, 2, group, kernel=1)

    def forward(self, vectors: Horizontal, scalars: Scalars) -> Float[Tensor, "batch 2 2"]:
        """Two vectors, one a row."""
        vectors, scalars = self.vectors_in(vectors), self.scalars_in(scalars)
        vectors, scalars = self.gate_in(vectors, scalars)
        for block in self.blocks:
            vectors, scalars = block(vectors, scalars)
        vectors, scalars = vectors.mean(-1, keepdim=True), scalars.mean(-1, keepdim=True)
        vectors, scalars = self.vectors_pooled(vectors), self.scalars_pooled(scalars)
        vectors, _ = self.gate_pooled(vectors, scalars)
        return self.out(self.norm(self.vectors_mixed(vectors))).squeeze(-1)


class EqNio(nn.Module):
    """A horizontal frame, and a ResNet1D that works in it.

    The angular rate is axial: in a mirrored frame it changes sign beside being mirrored.
    """

    def __init__(self, config: EqNioConfig) -> None:
        super().__init__()
        self.config = config
        self.frame = FrameNetwork(config.group, config.hidden, config.depth)
        self.backbone = config.backbone.build()

    def forward(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Mean, axes and log standard deviations; the third component is the vertical one."""
        check_features(features, self.config.window, self.config.channels)
        acc, gyr = features[:, ACC_CHANNEL], features[:, GYR_CHANNEL]
        if self.config.group == "O(2)":
            F_gc, handedness = horizontal_frame(self.frame(*invariants(acc, *polar_pair(gyr))))
            gyr = handedness * gyr
        else:
            F_gc, _ = horizontal_frame(self.frame(*invariants(acc, gyr)))
        mean_c, axes_c, log_std = self.backbone(F_gc.mT.unsqueeze(1) @ torch.stack((acc, gyr), 1))
        return so3.rotate(F_gc, mean_c), F_gc @ axes_c, log_std


def polar_pair(gyr: Samples) -> tuple[Samples, Samples]:
    """Two polar vectors that hold an angular rate: ``ω × Jω`` and ``ω × (ω × Jω)``, as long as ω.

    J ω is the horizontal part turned by a right angle; where there is none, the first axis.
    """
    x, y, _ = gyr.unbind(1)
    is_upright = (x == 0) & (y == 0)
    beside = torch.stack((torch.where(is_upright, 1, -y), x, torch.zeros_like(x)), dim=1)
    first = torch.linalg.cross(gyr, beside, dim=1)
    second = torch.linalg.cross(gyr, first, dim=1)
    rate = length(gyr, 1)
    return rate * unit(first, 1), rate * unit(second, 1)


def invariants(*vectors: Samples) -> tuple[Horizontal, Scalars]:
    """Horizontal parts; vertical parts, and lengths and inner products of the horizontal ones."""
    together = torch.stack(vectors, dim=1)
    horizontal, vertical = together[:, :, :2], together[:, :, 2]
    products = [(a * b).sum(1) for a, b in combinations(horizontal.unbind(1), 2)]
    lengths = length(horizontal, 2).squeeze(2)
    return horizontal, torch.cat((vertical, lengths, torch.stack(products, dim=1)), dim=1)


def horizontal_frame(
    vectors: Float[Tensor, "batch 2 2"],
) -> tuple[Float[Tensor, "batch 3 3"], Float[Tensor, "batch 1 1"]]:
    """Gram-Schmidt of two horizontal vectors beside the vertical, and the frame's handedness.

    In the plane nothing is left of the second vector but its side of the first. So no gradient
    reaches it, here or in the published network.
    """
    x, y = unit(vectors[:, 0], 1).unbind(1)
    side = x * vectors[:, 1, 1] - y * vectors[:, 1, 0]
    handedness = torch.where(side < 0, -torch.ones_like(side), torch.ones_like(side))
    o, i = torch.zeros_like(x), torch.ones_like(x)
    F_gc = so3.matrix_of(x, -handedness * y, o, y, handedness * x, o, o, o, i)
    return F_gc, handedness[:, None, None]


def right_angle(x: Horizontal) -> Horizontal:
    """Each vector turned by a right angle."""
    return torch.stack((-x[:, :, 1], x[:, :, 0]), dim=2)


def length(x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """Lengths along an axis, which is kept; with a finite gradient at zero."""
    return (x.square().sum(dim, keepdim=True) + torch.finfo(x.dtype).tiny).sqrt()


def unit(x: Float[Tensor, "..."], dim: int) -> Float[Tensor, "..."]:
    """Directions along an axis; what is shorter than a millionth stays short."""
    return x / length(x, dim).clamp(min=FLOOR)
