"""What training minimises."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from ginio.core.interfaces import Network, RegularisedNetwork
from ginio.core.measurement import Covariance

Target = Float[Tensor, "batch 3"]
Loss = Callable[[Network, Float[Tensor, "batch channel 3 time"], Target], Float[Tensor, ""]]


def mse(mean: Float[Tensor, "batch 3"], target: Target) -> Float[Tensor, ""]:
    """``|y - m̂|²`` averaged over windows (Eq. 39)."""
    return (target - mean).square().sum(-1).mean()


@dataclass(frozen=True, kw_only=True)
class LikelihoodLoss:
    """NLL averaged over windows, plus the spectral head's non-degeneracy penalty (Eq. 38).

    The penalty depends on ``AᵀA`` alone, so it does not prefer a direction.
    """

    penalty_weight: float = 1e-2

    def __call__(
        self, network: Network, features: Float[Tensor, "batch channel 3 time"], target: Target
    ) -> Float[Tensor, ""]:
        """Loss of one batch."""
        if isinstance(network, RegularisedNetwork):
            mean, axes, log_std, penalty = network.regularised(features)
            regulariser = self.penalty_weight * penalty.mean()
        else:
            mean, axes, log_std = network(features)
            regulariser = 0.0
        return Covariance(axes, log_std).nll(target - mean).mean() + regulariser
