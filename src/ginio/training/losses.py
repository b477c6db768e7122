"""What training minimises."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from ginio.core.interfaces import Network, RegularisedNetwork, SequenceNetwork
from ginio.core.measurement import Covariance

Target = Float[Tensor, "batch *output 3"]
Prediction = tuple[Float[Tensor, "batch *output 3"], Covariance, Float[Tensor, ""]]
Predict = Callable[[Network, Float[Tensor, "batch channel 3 time"]], Prediction]
Loss = Callable[[Network, Float[Tensor, "batch channel 3 time"], Target], Float[Tensor, ""]]


def predict(network: Network, features: Float[Tensor, "batch channel 3 time"]) -> Prediction:
    """Mean, covariance and the mean of the network's own penalty, zero if it has none.

    In the precision of the features, whatever the network's passes run in.
    """
    if isinstance(network, RegularisedNetwork):
        mean, axes, log_std, penalty = network.regularised(features)
    else:
        mean, axes, log_std = network(features)
        penalty = features.new_zeros(())
    mean, axes, log_std = mean.to(features), axes.to(features), log_std.to(features)
    return mean, Covariance(axes, log_std), penalty.to(features).mean()


def predict_sequence(
    network: Network, features: Float[Tensor, "batch channel 3 time"]
) -> Prediction:
    """The same of every output of a recurrent network."""
    assert isinstance(network, SequenceNetwork)
    mean, axes, log_std, penalty = network.regularised_sequence(features)
    mean, axes, log_std = mean.to(features), axes.to(features), log_std.to(features)
    return mean, Covariance(axes, log_std), penalty.to(features).mean()


def mse(mean: Float[Tensor, "batch *output 3"], target: Target) -> Float[Tensor, ""]:
    """``|y - m̂|²`` averaged over windows (Eq. 39)."""
    return (target - mean).square().sum(-1).mean()


@dataclass(frozen=True, kw_only=True)
class LikelihoodLoss:
    """NLL averaged over windows, plus the spectral head's non-degeneracy penalty (Eq. 38).

    The penalty depends on ``AᵀA`` alone, so it does not prefer a direction.
    """

    penalty_weight: float = 1e-2
    predict: Predict = predict
    """How the network is asked; a compiled `predict` answers the same, faster."""

    def __call__(
        self, network: Network, features: Float[Tensor, "batch channel 3 time"], target: Target
    ) -> Float[Tensor, ""]:
        """Loss of one batch."""
        mean, covariance, penalty = self.predict(network, features)
        return covariance.nll(target - mean).mean() + self.penalty_weight * penalty


@dataclass(frozen=True, kw_only=True)
class WarmUpLoss:
    """MSE of the mean, while Σ learns what that mean leaves over.

    The likelihood sees a detached residual, so the mean is fitted as if Σ were not there, and Σ is
    already of the right size when the likelihood takes over. Its weight keeps it from shaping the
    features they share.
    """

    penalty_weight: float = 1e-2
    likelihood_weight: float = 1e-2
    predict: Predict = predict

    def __call__(
        self, network: Network, features: Float[Tensor, "batch channel 3 time"], target: Target
    ) -> Float[Tensor, ""]:
        """Loss of one batch."""
        mean, covariance, penalty = self.predict(network, features)
        nll = covariance.nll((target - mean).detach()).mean()
        return mse(mean, target) + self.likelihood_weight * (nll + self.penalty_weight * penalty)
