"""Nonlinearities of vector channels: gates from invariants, and cross products."""

import torch
from torch import nn

from ginio.nn import algebra
from ginio.nn.algebra import VectorChannels, Vectors
from ginio.nn.linear import VectorLinear


class NormGate(nn.Module):
    """``σ(a |x| + b) x``: each channel opened or closed by its own length."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.ones(channels, 1))
        self.offset = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, x: VectorChannels) -> VectorChannels:
        """Gated channels."""
        return algebra.scale(x, torch.sigmoid(self.slope * algebra.norm(x) + self.offset))


def rectify(x: Vectors, q: Vectors, *, leak: float = 0.0) -> Vectors:
    """``x - (1 - leak) min(⟨x, q⟩, 0) q / |q|²``: the part of x against q is damped."""
    against = algebra.dot(x, q).clamp(max=0)
    length_squared = algebra.squared_norm(q) + torch.finfo(x.dtype).tiny
    factor = (1 - leak) * against / length_squared
    return torch.addcmul(x, q, factor.unsqueeze(-2), value=-1)


class DirectionalReLU(nn.Module):
    """ReLU along a learned direction, `rectify` with ``q = W x``.

    The directions come from the features, so they turn with them (Vector Neurons, Deng et al.
    2021).
    """

    def __init__(self, channels: int, *, leak: float = 0.0) -> None:
        super().__init__()
        self.direction = VectorLinear(channels, channels)
        self.leak = leak

    def forward(self, x: VectorChannels) -> VectorChannels:
        """Rectified channels."""
        return rectify(x, self.direction(x), leak=self.leak)


class VectorBracket(nn.Module):
    """``gate(x) + gate(x × W x)``: products of vectors beside a skip.

    Cross products are where two vector channels meet as more than a sum; they are the Lie bracket
    of so(3). Skip and product have a norm gate each.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.partner = VectorLinear(channels, channels)
        self.skip_gate = NormGate(channels)
        self.bracket_gate = NormGate(channels)

    def forward(self, x: VectorChannels) -> VectorChannels:
        """Gated sum of the channels and their brackets."""
        return self.skip_gate(x) + self.bracket_gate(algebra.cross(x, self.partner(x)))
