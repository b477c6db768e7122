"""Our absolute errors against the public benchmark's definition, and against evo's code.

NanoBench scores its state estimation task by the rigid alignment of Umeyama, without scale, and
the root mean square of what is left. evo is what most of the field prints. Its licence does not
allow us to need it, so these comparisons run where it is installed.
"""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Float64
from numpy import ndarray
from scipy.spatial.transform import Rotation

from ginio.metrics import trajectory

Path3 = Float64[ndarray, "time 3"]
TOL = 1e-9
KINDS = ("noisy", "unrelated", "mirrored", "planar", "straight and noisy", "far away")

seeds = st.integers(0, 2**31)
lengths = st.integers(4, 60)
each_kind = pytest.mark.parametrize("kind", KINDS)
# evo refuses to align a straight line, whose turn about itself nothing tells.
each_kind_of_evo = pytest.mark.parametrize("kind", KINDS[:4] + KINDS[5:])


def two_paths(kind: str, seed: int, length: int) -> tuple[Path3, Path3]:
    """A true path, and an estimate in a frame of its own that is wrong in some way."""
    rng = np.random.default_rng(seed)
    p_true = rng.normal(size=(length, 3)).cumsum(axis=0)
    if kind == "planar":
        p_true[:, 2] = 0
    if kind == "straight and noisy":
        p_true = np.outer(np.arange(length), [1.0, 2.0, -1.0])
    p_estimate = p_true + 0.3 * rng.normal(size=(length, 3))
    if kind == "unrelated":
        p_estimate = rng.normal(size=(length, 3)).cumsum(axis=0)
    if kind == "mirrored":
        p_estimate = p_estimate * [1, 1, -1]
    turned = p_estimate @ Rotation.random(rng=rng).as_matrix().T
    return p_true, turned + (1e3 if kind == "far away" else 3.0) * rng.normal(size=3)


def ours(name: str, p_true: Path3, p_estimate: Path3) -> float:
    metric = getattr(trajectory, name)
    return float(metric(torch.from_numpy(p_true), torch.from_numpy(p_estimate)))


def benchmark_ate(p_true: Path3, p_estimate: Path3) -> float:
    """From the definition: the rotation of least squares, by singular values (Umeyama 1991)."""
    a, b = p_true - p_true.mean(axis=0), p_estimate - p_estimate.mean(axis=0)
    u, _, v_t = np.linalg.svd(a.T @ b / len(a))
    keep = np.array([1.0, 1.0, np.sign(np.linalg.det(u) * np.linalg.det(v_t))])
    R = u * keep @ v_t
    left = p_true - (p_estimate @ R.T + (p_true.mean(axis=0) - R @ p_estimate.mean(axis=0)))
    return float(np.sqrt(np.mean(np.sum(left**2, axis=1))))


@each_kind
@given(seed=seeds, length=lengths)
def test_our_error_is_that_of_the_public_benchmark(kind: str, seed: int, length: int) -> None:
    p_true, p_estimate = two_paths(kind, seed, length)
    found = ours("ate_se3", p_true, p_estimate)
    assert found == pytest.approx(benchmark_ate(p_true, p_estimate), abs=TOL)


@each_kind
@given(seed=seeds)
def test_no_rotation_does_better(kind: str, seed: int) -> None:
    """What least squares means, without a formula: every neighbour and every stranger is worse."""
    p_true, p_estimate = two_paths(kind, seed, 30)
    best = ours("ate_se3", p_true, p_estimate)
    rng = np.random.default_rng(seed)
    for R in Rotation.random(20, rng=rng).as_matrix():
        moved = p_estimate @ R.T
        moved = moved - moved.mean(axis=0) + p_true.mean(axis=0)
        assert best <= float(np.sqrt(np.mean(np.sum((p_true - moved) ** 2, axis=1)))) + TOL


def test_scale_and_reflection_are_not_forgiven() -> None:
    p_true, _ = two_paths("noisy", 1, 50)
    about_centre = float(np.sqrt(np.mean(np.sum((p_true - p_true.mean(axis=0)) ** 2, axis=1))))
    assert ours("ate_se3", p_true, 1.2 * p_true) == pytest.approx(0.2 * about_centre, abs=TOL)
    assert ours("ate_se3", p_true, p_true * [1, 1, -1]) > 0.05


def evo_trajectory(p_w: Path3) -> Any:
    trajectories = pytest.importorskip("evo.core.trajectory")
    t = 0.04 * np.arange(len(p_w))
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(p_w), 1))
    return trajectories.PoseTrajectory3D(p_w, upright, t)


def evo_rmse(true: Any, estimate: Any) -> float:
    metrics = pytest.importorskip("evo.core.metrics")
    ape = metrics.APE(metrics.PoseRelation.translation_part)
    ape.process_data((true, estimate))
    return ape.get_statistic(metrics.StatisticsType.rmse)


@each_kind_of_evo
@given(seed=seeds, length=lengths)
def test_our_aligned_error_is_that_of_evo(kind: str, seed: int, length: int) -> None:
    p_true, p_estimate = two_paths(kind, seed, length)
    true, estimate = evo_trajectory(p_true), evo_trajectory(p_estimate)
    estimate.align(true, correct_scale=False)
    assert ours("ate_se3", p_true, p_estimate) == pytest.approx(evo_rmse(true, estimate), abs=TOL)


@each_kind_of_evo
@given(seed=seeds, length=lengths)
def test_our_error_from_the_origin_is_that_of_evo(kind: str, seed: int, length: int) -> None:
    """evo makes first poses one; with attitudes alike, that is first points."""
    p_true, p_estimate = two_paths(kind, seed, length)
    true, estimate = evo_trajectory(p_true), evo_trajectory(p_estimate)
    estimate.align_origin(true)
    assert ours("ate_origin", p_true, p_estimate) == pytest.approx(
        evo_rmse(true, estimate), abs=TOL
    )


def test_unaligned_errors_are_those_of_evo() -> None:
    p_true, p_estimate = two_paths("noisy", 2, 40)
    found = ours("rmse", p_true, p_estimate)
    assert found == pytest.approx(evo_rmse(evo_trajectory(p_true), evo_trajectory(p_estimate)))
    assert found > ours("ate_se3", p_true, p_estimate)
