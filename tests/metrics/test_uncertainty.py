import math

import scipy.stats
import torch
from strategies import assert_near, covariances

from ginio.metrics.uncertainty import chi2_3_cdf, coverage, nll_parts

COUNT = 4000
LEVELS = torch.tensor([0.1, 0.5, 0.683, 0.9, 0.954, 0.99], dtype=torch.float64)


def test_chi2_agrees_with_scipy(dtype: torch.dtype, tol: float) -> None:
    x = torch.cat((torch.zeros(1), torch.logspace(-6, 2.5, 200))).to(dtype)
    expected = torch.from_numpy(scipy.stats.chi2.cdf(x.double().numpy(), df=3)).to(dtype)
    assert_near(chi2_3_cdf(x), expected, tol)


def test_parts_of_the_likelihood_sum_to_it(dtype: torch.dtype, tol: float) -> None:
    covariance, residual = covariances(COUNT, dtype), torch.randn(COUNT, 3, dtype=dtype)
    parts = nll_parts(covariance, residual)
    assert_near(parts.mahalanobis + parts.log_det, covariance.nll(residual), tol)
    log_det = torch.linalg.slogdet(covariance.matrix().double())[1].to(dtype)
    assert_near(2 * parts.log_det, log_det, 100 * tol)
    assert (parts.mahalanobis >= 0).all()


def test_honest_covariances_cover_what_they_promise() -> None:
    covariance = covariances(COUNT, torch.float64)
    found = coverage(covariance, covariance.sample(), LEVELS)
    four_sigma = 4 * (LEVELS * (1 - LEVELS) / COUNT).sqrt()
    assert ((found - LEVELS).abs() < four_sigma).all()


def test_overconfident_covariances_cover_too_little() -> None:
    covariance = covariances(COUNT, torch.float64)
    found = coverage(covariance.scaled(0.5), covariance.sample(), LEVELS)
    quantile = torch.from_numpy(scipy.stats.chi2.ppf(LEVELS.numpy(), df=3))
    expected = torch.from_numpy(scipy.stats.chi2.cdf((0.25 * quantile).numpy(), df=3))
    assert ((found - expected).abs() < 4 * (expected * (1 - expected) / COUNT).sqrt()).all()
    assert (LEVELS - found > 0.05).all()


def test_timid_covariances_cover_too_much() -> None:
    covariance = covariances(COUNT, torch.float64)
    assert (coverage(covariance.scaled(2.0), covariance.sample(), LEVELS[:3]) > LEVELS[:3]).all()


def test_a_residual_that_is_no_number_is_never_covered() -> None:
    covariance = covariances(2, torch.float64)
    residual = torch.tensor([[math.nan, 0.0, 0.0], [math.inf, 0.0, 0.0]], dtype=torch.float64)
    assert (coverage(covariance, residual, LEVELS) == 0).all()


def test_honest_nees_averages_to_three() -> None:
    covariance = covariances(COUNT, torch.float64)
    nees = covariance.nees(covariance.sample())
    assert abs(float(nees.mean()) - 3) < 4 * math.sqrt(6 / COUNT)
    assert scipy.stats.kstest(nees.numpy(), scipy.stats.chi2(df=3).cdf).pvalue > 0.01
