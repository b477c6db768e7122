import math
from collections.abc import Callable

import pytest
import torch
from strategies import Sampler, assert_near, covariances, each_sampler, rotations
from torch import Tensor

from ginio.core import Covariance, Measurement, Quantity

COUNT = 200


def measurements(dtype: torch.dtype) -> Measurement:
    mean = torch.randn(COUNT, 3, dtype=dtype)
    return Measurement(mean, covariances(COUNT, dtype), Quantity.VELOCITY)


def test_matrix_is_symmetric_and_positive(dtype: torch.dtype, tol: float) -> None:
    covariance = covariances(COUNT, dtype)
    sigma = covariance.matrix()
    assert_near(sigma, sigma.mT, tol)
    expected = covariance.std.square().sort(dim=-1).values
    assert_near(torch.linalg.eigvalsh(sigma) / expected, torch.ones_like(expected), 100 * tol)


def test_matrix_has_the_axes_and_deviations_it_was_made_of(dtype: torch.dtype, tol: float) -> None:
    covariance = covariances(COUNT, dtype)
    variance = torch.exp(2 * covariance.log_std)
    expected = torch.einsum("bij,bj,bkj->bik", covariance.axes, variance, covariance.axes)
    assert_near(
        covariance.matrix() / variance.amax(-1)[:, None, None],
        expected / variance.amax(-1)[:, None, None],
        tol,
    )


def test_nll_is_the_normal_density_without_its_constant(dtype: torch.dtype, tol: float) -> None:
    covariance, residual = covariances(COUNT, dtype), torch.randn(COUNT, 3, dtype=dtype)
    sigma = covariance.matrix().double()
    normal = torch.distributions.MultivariateNormal(torch.zeros(3, dtype=torch.float64), sigma)
    expected = -normal.log_prob(residual.double()) - 1.5 * math.log(2 * math.pi)
    error = (covariance.nll(residual).double() - expected) / (1 + expected.abs())
    assert_near(error, torch.zeros_like(error), 10 * tol)


def test_nees_is_the_mahalanobis_form(dtype: torch.dtype, tol: float) -> None:
    covariance, residual = covariances(COUNT, dtype), torch.randn(COUNT, 3, dtype=dtype)
    inverse = torch.linalg.inv(covariance.matrix().double())
    e = residual.double()
    expected = torch.einsum("bi,bij,bj->b", e, inverse, e)
    ratio = covariance.nees(residual).double() / expected
    assert_near(ratio, torch.ones_like(ratio), 100 * tol)


def test_log_det_is_that_of_the_matrix(dtype: torch.dtype, tol: float) -> None:
    covariance = covariances(COUNT, dtype)
    assert_near(covariance.log_det(), torch.linalg.slogdet(covariance.matrix())[1], 100 * tol)


def test_whitening_makes_the_covariance_the_identity(dtype: torch.dtype, tol: float) -> None:
    covariance = covariances(COUNT, dtype)
    columns = [covariance.whiten(e.expand(COUNT, 3)) for e in torch.eye(3, dtype=dtype)]
    whitener = torch.stack(columns, dim=-1)
    white = whitener @ covariance.matrix() @ whitener.mT
    assert_near(white, torch.eye(3, dtype=dtype), 100 * tol)


def test_samples_have_the_covariance_they_were_drawn_from() -> None:
    count = 20_000
    one = covariances(1, torch.float64)
    many = Covariance(one.axes.expand(count, 3, 3), one.log_std.expand(count, 3))
    drawn = many.sample(generator=torch.Generator().manual_seed(5))
    sigma = one.matrix()[0]
    variance = sigma.diagonal()
    sigma_of_mean = (variance / count).sqrt()
    sigma_of_entry = ((variance[:, None] * variance + sigma.square()) / count).sqrt()
    assert (drawn.mean(0).abs() < 4 * sigma_of_mean).all()
    assert ((drawn.T @ drawn / count - sigma).abs() < 4 * sigma_of_entry).all()


def test_samples_repeat_with_their_generator(dtype: torch.dtype) -> None:
    covariance = covariances(5, dtype)
    first, again = (covariance.sample(generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert first.dtype == dtype
    assert torch.equal(first, again)


@each_sampler
def test_rotated_covariance_is_the_congruence(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    covariance, R = covariances(COUNT, dtype), rotations(COUNT, dtype, sampler)
    size = covariance.std.square().amax(-1)[:, None, None]
    expected = R @ covariance.matrix() @ R.mT
    assert_near(covariance.rotated(R).matrix() / size, expected / size, tol)


@each_sampler
def test_likelihood_does_not_see_a_common_rotation(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    covariance, R = covariances(COUNT, dtype), rotations(COUNT, dtype, sampler)
    residual = covariance.sample()
    turned = covariance.rotated(R).nll((R @ residual.unsqueeze(-1)).squeeze(-1))
    assert_near(turned, covariance.nll(residual), 100 * tol)


def test_one_rotation_turns_a_whole_batch(dtype: torch.dtype, tol: float) -> None:
    covariance, R = covariances(COUNT, dtype), rotations(1, dtype)
    expected = covariance.rotated(R.expand(COUNT, 3, 3)).matrix()
    assert_near(covariance.rotated(R).matrix() / expected.amax(), expected / expected.amax(), tol)


def test_scaled_covariance_is_that_of_the_scaled_quantity(dtype: torch.dtype, tol: float) -> None:
    covariance = covariances(COUNT, dtype)
    size = covariance.std.square().amax(-1)[:, None, None]
    scaled = covariance.scaled(3.0).matrix() / size
    assert_near(scaled, 9 * covariance.matrix() / size, 10 * tol)


def test_matrix_survives_factoring(dtype: torch.dtype, tol: float) -> None:
    sigma = covariances(COUNT, dtype).matrix()
    sigma = (sigma + sigma.mT) / 2
    factored = Covariance.from_matrix(sigma)
    size = sigma.abs().amax((-2, -1))[:, None, None]
    assert_near(factored.matrix() / size, sigma / size, 10 * tol)
    gram = factored.axes.mT @ factored.axes
    assert_near(gram, torch.eye(3, dtype=dtype), 10 * tol)


def test_isotropic_covariance_survives_factoring(dtype: torch.dtype, tol: float) -> None:
    sigma = 4 * torch.eye(3, dtype=dtype)
    assert_near(Covariance.from_matrix(sigma).matrix(), sigma, tol)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ((0, 0), math.nan, "not finite"),
        ((2, 1), math.inf, "not finite"),
        ((0, 1), 0.25, r"symmetric; relative asymmetry 0\.25"),
        ((1, 1), -2.0, "positive definite; smallest eigenvalue -2"),
        ((1, 1), 0.0, "positive definite; smallest eigenvalue 0"),
    ],
)
def test_a_faulty_matrix_is_refused_and_not_repaired(
    entry: tuple[int, int], value: float, message: str, dtype: torch.dtype
) -> None:
    sigma = torch.eye(3, dtype=dtype).repeat(4, 1, 1)
    sigma[2, *entry] = value
    before = sigma.clone()
    with pytest.raises(ValueError, match=message):
        Covariance.from_matrix(sigma)
    assert torch.equal(sigma.nan_to_num(), before.nan_to_num())


@pytest.mark.bare
def test_from_matrix_refuses_a_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"\(\.\.\., 3, 3\); found \(5, 2, 2\)"):
        Covariance.from_matrix(torch.eye(2).expand(5, 2, 2))


@pytest.mark.bare
@pytest.mark.parametrize(
    ("axes", "log_std"),
    [((5, 3, 3), (4, 3)), ((5, 3, 3), (5, 2)), ((5, 3), (5, 3)), ((2, 2), (2,))],
)
def test_covariance_refuses_parts_that_do_not_fit(
    axes: tuple[int, ...], log_std: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="found") as refusal:
        Covariance(torch.zeros(axes), torch.zeros(log_std))
    assert str(axes) in str(refusal.value)
    assert str(log_std) in str(refusal.value)


@pytest.mark.bare
def test_measurement_refuses_a_covariance_of_another_batch() -> None:
    with pytest.raises(ValueError, match=r"found \(4, 3\) and \(5, 3, 3\)"):
        Measurement(torch.zeros(4, 3), covariances(5, torch.float32), Quantity.VELOCITY)


@each_sampler
def test_rotated_measurement_is_the_interface_law(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    measurement, R = measurements(dtype), rotations(COUNT, dtype, sampler)
    turned = measurement.rotated(R)
    size = measurement.covariance.std.square().amax(-1)[:, None, None]
    expected = R @ measurement.covariance.matrix() @ R.mT
    assert_near(turned.mean, torch.einsum("bij,bj->bi", R, measurement.mean), tol)
    assert_near(turned.covariance.matrix() / size, expected / size, tol)
    assert turned.quantity is measurement.quantity


def same(actual: Measurement, expected: Measurement, tol: float) -> None:
    size = expected.covariance.std.square().amax(-1)[:, None, None]
    assert_near(actual.mean, expected.mean, tol)
    found, wanted = actual.covariance.matrix(), expected.covariance.matrix()
    assert_near(found / size, wanted / size, tol)


@each_sampler
def test_rotations_of_a_measurement_compose(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    measurement = measurements(dtype)
    R_ca, R_af = rotations(COUNT, dtype, sampler), rotations(COUNT, dtype)
    same(measurement.rotated(R_af).rotated(R_ca), measurement.rotated(R_ca @ R_af), tol)


@each_sampler
def test_the_inverse_rotation_takes_a_measurement_back(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    measurement, R = measurements(dtype), rotations(COUNT, dtype, sampler)
    same(measurement.rotated(R).rotated(R.mT), measurement, tol)


def test_the_residual_turns_with_the_measurement(dtype: torch.dtype, tol: float) -> None:
    measurement, R = measurements(dtype), rotations(COUNT, dtype)
    expected = torch.randn(COUNT, 3, dtype=dtype)

    def turn(v: Tensor) -> Tensor:
        return torch.einsum("bij,bj->bi", R, v)

    residual = measurement.rotated(R).residual(turn(expected))
    assert_near(residual, turn(measurement.residual(expected)), tol)


@pytest.mark.parametrize("change", [lambda m: m.rotated, lambda m: m.covariance.rotated])
def test_rotating_leaves_the_original(
    change: Callable[[Measurement], Callable[[Tensor], object]], dtype: torch.dtype
) -> None:
    measurement = measurements(dtype)
    mean, axes = measurement.mean.clone(), measurement.covariance.axes.clone()
    change(measurement)(rotations(COUNT, dtype))
    assert torch.equal(measurement.mean, mean)
    assert torch.equal(measurement.covariance.axes, axes)
