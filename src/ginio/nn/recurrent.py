"""A gated recurrent cell on vector channels, as GINIO-A's."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.nn import algebra
from ginio.nn.linear import VectorLinear
from ginio.nn.nonlinear import DirectionalReLU
from ginio.nn.norm import VectorLayerScaleNorm

Hidden = Float[Tensor, "batch hidden 3"]


class VectorGRUCell(nn.Module):
    """GRU cell whose gates see only lengths, so its state turns with its input (Eq. 20).

    Reset and update gates are σ of a linear map of ``s(U) = |(W U)_i|`` of input and state; the
    candidate is a normalised directional ReLU of mixed vectors.
    """

    def __init__(self, channels_in: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.input_lengths = VectorLinear(channels_in, hidden)
        self.state_lengths = VectorLinear(hidden, hidden)
        self.gates = nn.Linear(2 * hidden, 2 * hidden)
        self.from_input = VectorLinear(channels_in, hidden)
        self.from_state = VectorLinear(hidden, hidden)
        self.activation = DirectionalReLU(hidden)
        self.norm = VectorLayerScaleNorm(hidden)

    def forward(self, x: Float[Tensor, "batch channel 3"], state: Hidden) -> Hidden:
        """The next hidden state."""
        x, h = x.unsqueeze(-1), state.unsqueeze(-1)
        lengths = (algebra.norm(self.input_lengths(x)), algebra.norm(self.state_lengths(h)))
        gates = torch.sigmoid(self.gates(torch.cat(lengths, dim=1).squeeze(-1)))
        reset, update = gates[..., None, None].chunk(2, dim=1)
        mixed = self.from_input(x) + self.from_state(reset * h)
        candidate = self.norm(self.activation(mixed))
        return torch.lerp(h, candidate, update).squeeze(-1)
