import pytest
import torch
from strategies import Sampler, assert_near, each_sampler, rotations
from torch import Tensor

from ginio.core import Covariance, Network
from ginio.metrics.equivariance import law_errors

BATCH, TIME = 30, 16

OFFSET = torch.tensor([0.0, 3.0, 4.0])
STRETCH = torch.diag(torch.tensor([1.0, 2.0, 3.0]))


def toy(*, offset: Tensor, stretch: Tensor) -> Network:
    """The mean and scatter of the channels, which turn with them, and what breaks either law."""

    def network(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        samples = features.transpose(1, 2).flatten(2)
        scatter = samples @ samples.mT / samples.shape[-1]
        sigma = Covariance.from_matrix(scatter + stretch.to(features.dtype))
        return samples.mean(-1) + offset.to(features.dtype), sigma.axes, sigma.log_std

    return network


def features(dtype: torch.dtype) -> Tensor:
    return torch.randn(BATCH, 2, 3, TIME, dtype=dtype) + 1


@each_sampler
def test_an_equivariant_network_has_no_law_errors(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    network = toy(offset=torch.zeros(3), stretch=torch.zeros(3, 3))
    errors = law_errors(network, features(dtype), rotations(BATCH, dtype, sampler))
    zero = torch.zeros(BATCH, dtype=dtype)
    for error in (errors.mean, errors.mean_relative, errors.covariance, errors.covariance_relative):
        assert_near(error, zero, 100 * tol)


def test_a_constant_vector_breaks_the_mean_law_alone(dtype: torch.dtype, tol: float) -> None:
    network = toy(offset=OFFSET, stretch=torch.zeros(3, 3))
    x, R_ms = features(dtype), rotations(BATCH, dtype)
    errors = law_errors(network, x, R_ms)
    expected = (OFFSET.to(dtype) - R_ms @ OFFSET.to(dtype)).norm(dim=-1)
    answer = (x.mean((1, 3)) + OFFSET.to(dtype)).norm(dim=-1)
    assert_near(errors.mean, expected, 100 * tol)
    assert_near(errors.mean_relative, expected / answer, 100 * tol)
    assert_near(errors.covariance, torch.zeros(BATCH, dtype=dtype), 100 * tol)
    assert (errors.mean > 0.1).all()


def test_a_constant_tensor_breaks_the_covariance_law_alone(dtype: torch.dtype, tol: float) -> None:
    network = toy(offset=torch.zeros(3), stretch=STRETCH)
    x, R_ms = features(dtype), rotations(BATCH, dtype)
    errors = law_errors(network, x, R_ms)
    stretch = STRETCH.to(dtype)
    expected = torch.linalg.matrix_norm(stretch - R_ms @ stretch @ R_ms.mT)
    samples = x.transpose(1, 2).flatten(2)
    answer = torch.linalg.matrix_norm(samples @ samples.mT / (2 * TIME) + stretch)
    assert_near(errors.covariance, expected, 100 * tol)
    assert_near(errors.covariance_relative, expected / answer, 100 * tol)
    assert_near(errors.mean, torch.zeros(BATCH, dtype=dtype), 100 * tol)
    assert (errors.covariance > 0.1).all()


@pytest.mark.parametrize("offset", [torch.zeros(3), OFFSET], ids=["whole", "broken"])
def test_the_identity_is_no_test(offset: Tensor, dtype: torch.dtype) -> None:
    network = toy(offset=offset, stretch=STRETCH)
    R_ms = torch.eye(3, dtype=dtype).expand(BATCH, 3, 3)
    errors = law_errors(network, features(dtype), R_ms)
    assert_near(errors.mean, torch.zeros(BATCH, dtype=dtype), 0)
