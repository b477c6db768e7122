"""Linear maps of vector channels: one scalar weight acts on x, y and z alike."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


class VectorLinear(nn.Module):
    """``Y_c = Σ_c' w_cc' X_c'`` (Eq. 4, 14): mixes channels, never the axis of three.

    There is no bias: a constant vector would prefer a direction.
    """

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in))
        nn.init.normal_(self.weight, std=1 / math.sqrt(channels_in))

    def forward(
        self, x: Float[Tensor, "batch channel_in 3 time"]
    ) -> Float[Tensor, "batch channel_out 3 time"]:
        """Mixed channels."""
        return nn.functional.conv2d(x, self.weight[:, :, None, None])


class VectorConv(nn.Module):
    """``Z_tc = Σ_τc' k_τcc' Y_(t-τ)c'`` (Eq. 5, 15): a temporal convolution with scalar kernels.

    Written as a 2-d convolution with a kernel of height one, whose "height" is the axis of three.
    ``padding`` zeros are put at both ends, half a kernel unless told.
    It has ``K C_in C_out`` weights (Eq. 17) where a convolution of flattened coordinates has
    ``9 K C_in C_out`` (Eq. 16).
    """

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        kernel_size: int,
        *,
        stride: int = 1,
        padding: int | None = None,
    ) -> None:
        super().__init__()
        self.stride = stride
        self.padding = kernel_size // 2 if padding is None else padding
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in, kernel_size))
        nn.init.normal_(self.weight, std=1 / math.sqrt(channels_in * kernel_size))

    def forward(
        self, x: Float[Tensor, "batch channel_in 3 time_in"]
    ) -> Float[Tensor, "batch channel_out 3 time_out"]:
        """Filtered channels."""
        return nn.functional.conv2d(
            x,
            self.weight.unsqueeze(-2),
            stride=(1, self.stride),
            padding=(0, self.padding),
        )
