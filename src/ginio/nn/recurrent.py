"""A gated recurrent cell on vector channels, as GINIO-A's, and a layer of it over sequences.

Sequences are ``time batch 3 channel``. Time comes to the front once; the channels last, so that a
map of channels is one matrix product for all three components of a batch.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.nn import algebra
from ginio.nn.linear import VectorLinear
from ginio.nn.nonlinear import DirectionalReLU, rectify
from ginio.nn.norm import EPS, VectorLayerScaleNorm

Hidden = Float[Tensor, "batch 3 hidden"]
Sequence = Float[Tensor, "time batch 3 channel"]


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

    def forward(self, x: Float[Tensor, "batch 3 channel"], state: Hidden) -> Hidden:
        """The next hidden state."""
        return self.step(*self.prepare(x), state)

    def run(self, x: Sequence, state: Hidden) -> Float[Tensor, "time batch 3 hidden"]:
        """The states after each input of a sequence."""
        states: list[Tensor] = []
        for gates, mixed in zip(*(part.unbind() for part in self.prepare(x)), strict=True):
            state = self.step(gates, mixed, state)
            states.append(state)
        return torch.stack(states)

    def prepare(
        self, x: Float[Tensor, "*batch 3 channel"]
    ) -> tuple[Float[Tensor, "*batch gate"], Float[Tensor, "*batch 3 hidden"]]:
        """What inputs add to gates and candidates: all that need not wait for a state."""
        lengths = algebra.norm(mix(x, self.input_lengths))
        weight = self.gates.weight[:, : self.hidden]
        gates = nn.functional.linear(lengths, weight, self.gates.bias)
        return gates, mix(x, self.from_input)

    def step(self, gates: Float[Tensor, "batch gate"], mixed: Hidden, state: Hidden) -> Hidden:
        """The next hidden state, from a prepared input."""
        lengths = algebra.norm(mix(state, self.state_lengths))
        gates = gates + nn.functional.linear(lengths, self.gates.weight[:, self.hidden :])
        reset, update = torch.sigmoid(gates).unsqueeze(1).chunk(2, dim=-1)
        mixed = mixed + mix(reset * state, self.from_state)
        candidate = rectify(mixed, mix(mixed, self.activation.direction))
        mean_square = 3 * candidate.square().mean(dim=(1, 2), keepdim=True)
        candidate = candidate * (torch.rsqrt(mean_square + EPS) * self.norm.gain)
        return torch.lerp(state, candidate, update)


class VectorGRU(nn.Module):
    """A recurrent layer; the outputs of two directions stand side by side as channels."""

    def __init__(self, channels_in: int, hidden: int, *, is_bidirectional: bool) -> None:
        super().__init__()
        self.hidden = hidden
        self.forwards = VectorGRUCell(channels_in, hidden)
        self.backwards = VectorGRUCell(channels_in, hidden) if is_bidirectional else None
        self.channels_out = 2 * hidden if is_bidirectional else hidden

    def forward(
        self, x: Sequence, state: Hidden | None = None
    ) -> Float[Tensor, "time batch 3 channel_out"]:
        """The layer's output at every time; of one direction, the last is the state to go on from.

        A direction starts from rest; the forward one from ``state``, if there is one.
        """
        rest = x.new_zeros(*x.shape[1:3], self.hidden)
        past = self.forwards.run(x, rest if state is None else state)
        if self.backwards is None:
            return past
        return torch.cat((past, self.backwards.run(x.flip(0), rest).flip(0)), dim=-1)


def mix(
    x: Float[Tensor, "*batch 3 channel_in"], linear: VectorLinear
) -> Float[Tensor, "*batch 3 channel_out"]:
    """A map of channels where they are the last axis."""
    return nn.functional.linear(x, linear.weight)
