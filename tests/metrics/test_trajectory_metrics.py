import math

import pytest
import torch
from strategies import assert_near, rotations, scipy_matrices, uniform, yaw_matrices
from torch import Tensor

from ginio.metrics import trajectory

BATCH, TIME, STEP = 10, 80, 20


def paths(dtype: torch.dtype) -> Tensor:
    return torch.randn(BATCH, TIME, 3, dtype=dtype).cumsum(dim=1)


def turned(R: Tensor, p: Tensor) -> Tensor:
    return torch.einsum("...ij,...tj->...ti", R, p)


def upright(dtype: torch.dtype) -> Tensor:
    tilt = 0.2 * uniform(BATCH * TIME, torch.float64)
    return scipy_matrices(tilt).to(dtype).reshape(BATCH, TIME, 3, 3)


def test_rmse_is_the_distance_of_two_parallel_paths(dtype: torch.dtype, tol: float) -> None:
    p = paths(dtype)
    offset = torch.tensor([2.0, -3.0, 6.0], dtype=dtype)
    score = trajectory.rmse(p, p + offset)
    assert score.shape == (BATCH,)
    assert_near(score, torch.full((), 7.0, dtype=dtype), 10 * tol)


def test_rmse_weighs_squares() -> None:
    p_true, p_estimate = torch.zeros(4, 3), torch.zeros(4, 3)
    p_estimate[0, 1] = 4.0
    assert_near(trajectory.rmse(p_true, p_estimate), torch.tensor(2.0), 1e-6)


def test_no_aligned_error_sees_a_translation(dtype: torch.dtype, tol: float) -> None:
    p, zero = paths(dtype), torch.zeros(BATCH, dtype=dtype)
    moved = p + torch.randn(BATCH, 1, 3, dtype=dtype)
    for ate in (trajectory.ate_se3, trajectory.ate_yaw, trajectory.ate_origin):
        assert_near(ate(p, moved), zero, 100 * tol)


def test_the_ates_differ_in_the_rotations_they_forgive(dtype: torch.dtype, tol: float) -> None:
    p, zero = paths(dtype), torch.zeros(BATCH, dtype=dtype)
    by_yaw = turned(yaw_matrices(torch.linspace(1, 3, BATCH).double()).to(dtype), p)
    by_any = turned(rotations(BATCH, dtype), p)
    assert_near(trajectory.ate_se3(p, by_any), zero, 100 * tol)
    assert_near(trajectory.ate_se3(p, by_yaw), zero, 100 * tol)
    assert_near(trajectory.ate_yaw(p, by_yaw), zero, 100 * tol)
    assert (trajectory.ate_yaw(p, by_any) > 0.1).all()
    assert (trajectory.ate_origin(p, by_yaw) > 0.1).all()


@pytest.mark.parametrize("scale", [0.5, 1.1])
def test_no_aligned_error_forgives_scale(scale: float, dtype: torch.dtype, tol: float) -> None:
    p = paths(dtype)
    about_centre = (p - p.mean(1, keepdim=True)).square().sum(-1).mean(-1).sqrt()
    about_start = (p - p[:, :1]).square().sum(-1).mean(-1).sqrt()
    missing = abs(1 - scale)
    assert_near(trajectory.ate_se3(p, scale * p), missing * about_centre, 10 * tol)
    assert_near(trajectory.ate_yaw(p, scale * p), missing * about_centre, 10 * tol)
    assert_near(trajectory.ate_origin(p, scale * p), missing * about_start, 10 * tol)


def test_more_freedom_never_raises_the_error(dtype: torch.dtype, tol: float) -> None:
    p_true, p_estimate = paths(dtype), paths(dtype)
    se3, yaw, origin = (
        ate(p_true, p_estimate)
        for ate in (trajectory.ate_se3, trajectory.ate_yaw, trajectory.ate_origin)
    )
    assert (se3 <= yaw + tol).all()
    assert (yaw <= origin + tol).all()


def test_rte_does_not_see_a_yaw_of_path_and_attitude(dtype: torch.dtype, tol: float) -> None:
    p_true, R_true = paths(dtype), upright(dtype)
    R_vw = yaw_matrices(torch.linspace(0.5, 2.5, BATCH).double()).to(dtype)
    p_estimate, R_estimate = turned(R_vw, p_true), R_vw.unsqueeze(1) @ R_true
    zero = torch.zeros(BATCH, dtype=dtype)
    score = trajectory.rte(p_true, p_estimate, R_true, R_estimate, step=STEP)
    assert_near(score, zero, 100 * tol)
    wrong_sign = trajectory.rte(p_true, p_estimate, R_estimate, R_true, step=STEP)
    assert (wrong_sign > 0.1).all()


def test_rte_removes_the_heading_error_of_each_start(dtype: torch.dtype, tol: float) -> None:
    R_true = upright(dtype)[0]
    yaw_error = torch.linspace(0, 2, TIME, dtype=torch.float64)
    R_vw = yaw_matrices(yaw_error).to(dtype)
    p_true = paths(dtype)[0]
    steps = torch.einsum("tij,tj->ti", R_vw[:-1], p_true.diff(dim=0))
    p_estimate = torch.cat((p_true[:1], p_true[:1] + steps.cumsum(0)))
    zero = torch.zeros((), dtype=dtype)
    score = trajectory.rte(p_true, p_estimate, R_true, R_vw @ R_true, step=1)
    assert_near(score, zero, 100 * tol)
    assert trajectory.rte(p_true, p_estimate, R_true, R_true, step=1) > 0.1


def test_rte_does_not_forgive_a_tilt(dtype: torch.dtype) -> None:
    p_true, R_true = paths(dtype), upright(dtype)
    R_tilt = scipy_matrices(torch.tensor([[0.5, 0.0, 0.0]], dtype=dtype))
    score = trajectory.rte(p_true, turned(R_tilt, p_true), R_true, R_tilt @ R_true, step=STEP)
    assert (score > 0.1).all()


def test_rte_of_a_velocity_bias_is_the_bias_times_the_interval(
    dtype: torch.dtype, tol: float
) -> None:
    p_true, R = paths(dtype), upright(dtype)
    drift = torch.arange(TIME, dtype=dtype)[:, None] * torch.tensor([0.03, 0.0, -0.04], dtype=dtype)
    score = trajectory.rte(p_true, p_true + drift, R, R, step=STEP)
    assert_near(score, torch.full((), 0.05 * STEP, dtype=dtype), 100 * tol)


def test_drift_ratio_is_in_percent_of_the_true_path(dtype: torch.dtype, tol: float) -> None:
    there_and_back = torch.cat((torch.arange(0, 51), torch.arange(49, -1, -1))).to(dtype)
    p_true = torch.stack((there_and_back, 0 * there_and_back, 0 * there_and_back), dim=-1)
    p_estimate = p_true.clone()
    p_estimate[50] += 1000.0
    p_estimate[-1] += torch.tensor([0.0, 3.0, 4.0], dtype=dtype)
    assert_near(trajectory.drift_ratio(p_true, p_estimate), torch.tensor(5.0, dtype=dtype), tol)


def test_velocity_rmse_takes_all_components_together(dtype: torch.dtype, tol: float) -> None:
    v = torch.randn(BATCH, TIME, 3, dtype=dtype)
    error = torch.tensor([1.0, 2.0, 2.0], dtype=dtype)
    score = trajectory.velocity_rmse(v, v + error)
    assert_near(score, torch.full((), 3.0, dtype=dtype), 10 * tol)
    uneven = v.clone()
    uneven[:, ::2, 0] += 1.0
    expected = torch.full((), math.sqrt(0.5), dtype=dtype)
    assert_near(trajectory.velocity_rmse(v, uneven), expected, 10 * tol)


def test_a_batch_is_scored_as_its_members(dtype: torch.dtype, tol: float) -> None:
    p_true, p_estimate = paths(dtype), paths(dtype)
    for score in (
        trajectory.rmse,
        trajectory.ate_se3,
        trajectory.ate_yaw,
        trajectory.ate_origin,
        trajectory.drift_ratio,
    ):
        loop = torch.stack([score(a, b) for a, b in zip(p_true, p_estimate, strict=True)])
        assert_near(score(p_true, p_estimate) / loop, torch.ones_like(loop), 10 * tol)
