"""Heads: from vector features to a motion vector and to a covariance."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ginio.geometry.projection import non_degeneracy_penalty, polar
from ginio.geometry.so3 import identity_like
from ginio.nn.linear import VectorLinear
from ginio.nn.nonlinear import DirectionalReLU
from ginio.nn.norm import NormKind, VectorDropout, build_norm

Vectors = Float[Tensor, "batch output 3"]


class VectorHead(nn.Module):
    """A perceptron on all channels and times of a feature map, giving a few vectors.

    The counterpart of the fully connected block of TLIO's ResNet: narrow, flatten time into
    channels, two hidden layers with one shared nonlinearity, out.
    """

    def __init__(  # noqa: PLR0913 - each is a width or a choice of the paper's block
        self,
        channels: int,
        times: int,
        outputs: int,
        *,
        narrow: int,
        hidden: int,
        norm: NormKind,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.narrow = VectorLinear(channels, narrow)
        self.norm = build_norm(norm, narrow)
        self.first = VectorLinear(narrow * times, hidden)
        self.second = VectorLinear(hidden, hidden)
        self.activation = DirectionalReLU(hidden, leak=0.1)
        self.dropout = VectorDropout(dropout)
        self.out = VectorLinear(hidden, outputs)

    def forward(self, x: Float[Tensor, "batch channel 3 time"]) -> Vectors:
        """The head's vectors."""
        narrow = self.norm(self.narrow(x))
        flat = narrow.transpose(2, 3).flatten(1, 2).unsqueeze(-1)
        h = self.dropout(self.activation(self.first(flat)))
        h = self.dropout(self.activation(self.second(h)))
        return self.out(h).squeeze(-1)


class SpectralCovariance(nn.Module):
    """Axes and log standard deviations from three vectors ``A = [a₁ a₂ a₃]`` (Eq. 34).

    The polar decomposition ``A = V S`` splits A into what turns and what does not: the axes are
    ``V = polar(A)`` (Eq. 35), and λ is a perceptron of the six entries of ``AᵀA = S²``, which
    are all the rotation invariants of A but its handedness.

    The paper corrects the determinant of V. Σ needs no rotation, only orthogonal axes, and the
    penalty drives mirrored triples to where the corrected form jumps; so by default it is left.
    """

    upper: Tensor

    def __init__(self, *, determinant_correction: bool, hidden: int = 49) -> None:
        super().__init__()
        self.determinant_correction = determinant_correction
        self.register_buffer("upper", torch.triu_indices(3, 3), persistent=False)
        self.log_std = nn.Sequential(
            nn.Linear(6, hidden, bias=False), nn.SiLU(), nn.Linear(hidden, 3, bias=False)
        )

    def forward(
        self, vectors: Float[Tensor, "batch 3 3"]
    ) -> tuple[Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Axes V and λ; the rows of the input are the vectors ``a_i``.

        In float32 or better: axes that are orthonormal to three digits would be none.
        """
        with torch.autocast(vectors.device.type, enabled=False):
            a = _precise(vectors).mT
            gram = a.mT @ a
            axes = polar(a, proper=self.determinant_correction)
            return axes, self.log_std(gram[:, self.upper[0], self.upper[1]])

    def penalty(self, vectors: Float[Tensor, "batch 3 3"]) -> Float[Tensor, " batch"]:
        """How far the vectors are from orthonormal; the same in every frame."""
        with torch.autocast(vectors.device.type, enabled=False):
            return non_degeneracy_penalty(_precise(vectors).mT)


def _precise(vectors: Float[Tensor, "batch 3 3"]) -> Float[Tensor, "batch 3 3"]:
    return vectors.float() if vectors.dtype is torch.bfloat16 else vectors


class DiagonalCovariance(nn.Module):
    """Coordinate axes whatever the input, and one predicted vector read as log deviations.

    The paper's ablation. It breaks the covariance law, because its axes do not turn.
    """

    def forward(
        self, vectors: Float[Tensor, "batch 1 3"]
    ) -> tuple[Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """Identity axes and λ."""
        log_std = vectors.squeeze(1)
        return identity_like(log_std), log_std

    def penalty(self, vectors: Float[Tensor, "batch 1 3"]) -> Float[Tensor, " batch"]:
        """Nothing can degenerate."""
        return torch.zeros_like(vectors[:, 0, 0])
