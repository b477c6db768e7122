import math

import pytest
import torch
from strategies import (
    Sampler,
    assert_near,
    assert_rotations,
    each_sampler,
    rotations,
    yaw_matrices,
)
from torch import Tensor

from ginio.geometry import alignment

BATCH, TIME = 20, 50


def paths(dtype: torch.dtype) -> Tensor:
    return torch.randn(BATCH, TIME, 3, dtype=dtype) * torch.tensor([3.0, 2.0, 1.0], dtype=dtype)


def moved(p: Tensor, R: Tensor, t: Tensor, scale: float = 1.0) -> Tensor:
    return scale * torch.einsum("bij,btj->bti", R, p) + t.unsqueeze(1)


def residual(p_a: Tensor, p_b: Tensor) -> Tensor:
    return (p_a - p_b).square().sum((-2, -1))


@each_sampler
@pytest.mark.parametrize("scale", [1.0, 0.25, 3.0])
def test_umeyama_recovers_a_similarity(
    sampler: Sampler, scale: float, dtype: torch.dtype, tol: float
) -> None:
    p_b, R_ab = paths(dtype), rotations(BATCH, dtype, sampler)
    t_a = torch.randn(BATCH, 3, dtype=dtype)
    p_a = moved(p_b, R_ab, t_a, scale)
    found = alignment.umeyama(p_a, p_b, with_scale=True)
    assert_near(found.R_ab, R_ab, tol)
    assert_near(found.t_a, t_a, 10 * tol)
    assert_near(found.scale, torch.full((), scale, dtype=dtype), tol)
    assert_near(found(p_b), p_a, 10 * tol)


@each_sampler
def test_umeyama_without_scale_recovers_a_rigid_motion(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    p_b, R_ab = paths(dtype), rotations(BATCH, dtype, sampler)
    p_a = moved(p_b, R_ab, torch.randn(BATCH, 3, dtype=dtype))
    found = alignment.umeyama(p_a, p_b)
    assert_near(found(p_b), p_a, 10 * tol)
    assert torch.equal(found.scale, torch.ones_like(found.scale))


def test_umeyama_of_a_scaled_path_keeps_the_scale_it_was_given(
    dtype: torch.dtype, tol: float
) -> None:
    p_b, R_ab = paths(dtype), rotations(BATCH, dtype)
    p_a = moved(p_b, R_ab, torch.zeros(BATCH, 3, dtype=dtype), 2.0)
    found = alignment.umeyama(p_a, p_b)
    assert_near(found.R_ab, R_ab, tol)
    assert torch.equal(found.scale, torch.ones_like(found.scale))


@pytest.mark.parametrize(
    "squash", [[1.0, 1.0, -1.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]], ids=["mirror", "plane", "both"]
)
def test_umeyama_never_answers_with_a_mirror(
    squash: list[float], dtype: torch.dtype, tol: float
) -> None:
    p_b = paths(dtype)
    p_a = p_b * torch.tensor(squash, dtype=dtype)
    assert_rotations(alignment.umeyama(p_a, p_b, with_scale=True).R_ab, tol)


def test_umeyama_recovers_the_rotation_of_planar_paths(dtype: torch.dtype, tol: float) -> None:
    p_b = paths(dtype) * torch.tensor([1.0, 1.0, 0.0], dtype=dtype)
    R_ab = rotations(BATCH, dtype)
    p_a = moved(p_b, R_ab, torch.zeros(BATCH, 3, dtype=dtype))
    assert_near(alignment.umeyama(p_a, p_b).R_ab, R_ab, 10 * tol)


def test_umeyama_beats_its_neighbours(dtype: torch.dtype, tol: float) -> None:
    p_a, p_b = paths(dtype), paths(dtype)
    found = alignment.umeyama(p_a, p_b, with_scale=True)
    best = residual(p_a, found(p_b))
    for step in (rotations(50, dtype)[:, None], torch.eye(3, dtype=dtype).expand(1, 1, 3, 3)):
        for factor in (0.9, 1.0, 1.1):
            rival = alignment.Alignment(
                R_ab=(step @ found.R_ab),
                t_a=(found.t_a + 0.1 * torch.randn_like(found.t_a)).expand(len(step), -1, -1),
                scale=(factor * found.scale).expand(len(step), -1),
            )
            assert (best <= residual(p_a, rival(p_b.expand(len(step), -1, -1, -1))) + tol).all()


def test_fewer_freedoms_never_align_better(dtype: torch.dtype, tol: float) -> None:
    p_a, p_b = paths(dtype), paths(dtype)
    similarity = residual(p_a, alignment.umeyama(p_a, p_b, with_scale=True)(p_b))
    rigid = residual(p_a, alignment.umeyama(p_a, p_b)(p_b))
    heading = residual(p_a, alignment.align_yaw(p_a, p_b)(p_b))
    centred = residual(p_a - p_a.mean(-2, keepdim=True), p_b - p_b.mean(-2, keepdim=True))
    origin = residual(p_a, alignment.align_origin(p_a, p_b)(p_b))
    slack = 1 + tol
    assert (similarity <= slack * rigid).all()
    assert (rigid <= slack * heading).all()
    assert (heading <= slack * centred).all()
    assert (centred <= slack * origin).all()


def test_a_batch_is_aligned_as_its_members(dtype: torch.dtype, tol: float) -> None:
    p_a, p_b = paths(dtype), paths(dtype)
    for align in (alignment.umeyama, alignment.align_yaw, alignment.align_origin):
        batch = align(p_a, p_b)(p_b)
        loop = torch.stack([align(a, b)(b) for a, b in zip(p_a, p_b, strict=True)])
        assert_near(batch, loop, 10 * tol)


def test_align_yaw_recovers_a_heading(dtype: torch.dtype, tol: float) -> None:
    p_b, yaw = paths(dtype), torch.linspace(-math.pi, math.pi, BATCH, dtype=torch.float64)
    R_ab, t_a = yaw_matrices(yaw).to(dtype), torch.randn(BATCH, 3, dtype=dtype)
    p_a = moved(p_b, R_ab, t_a)
    found = alignment.align_yaw(p_a, p_b)
    assert_near(found.R_ab, R_ab, tol)
    assert_near(found.t_a, t_a, 10 * tol)


def test_align_yaw_beats_every_other_heading(dtype: torch.dtype, tol: float) -> None:
    p_a, p_b = paths(dtype), paths(dtype)
    a, b = p_a - p_a.mean(-2, keepdim=True), p_b - p_b.mean(-2, keepdim=True)
    best = residual(p_a, alignment.align_yaw(p_a, p_b)(p_b))
    for R in yaw_matrices(torch.linspace(-math.pi, math.pi, 91, dtype=torch.float64)).to(dtype):
        assert (best <= (1 + tol) * residual(a, b @ R.mT)).all()


def test_align_first_pose_makes_the_first_poses_one(dtype: torch.dtype, tol: float) -> None:
    p_a, p_b = paths(dtype), paths(dtype)
    R_as, R_bs = rotations(2 * BATCH, dtype).reshape(2, BATCH, 3, 3)
    found = alignment.align_first_pose(p_a, p_b, R_as, R_bs)
    assert_near(found(p_b)[:, 0], p_a[:, 0], tol)
    assert_near(found.R_ab @ R_bs, R_as, tol)
    step_in_sensor = torch.einsum("bji,btj->bti", R_bs, p_b.diff(dim=1))
    aligned_step = torch.einsum("bji,btj->bti", R_as, found(p_b).diff(dim=1))
    assert_near(aligned_step, step_in_sensor, 10 * tol)


def test_align_origin_only_translates(dtype: torch.dtype, tol: float) -> None:
    p_a, p_b = paths(dtype), paths(dtype)
    aligned = alignment.align_origin(p_a, p_b)(p_b)
    assert_near(aligned[:, 0], p_a[:, 0], tol)
    assert_near(aligned.diff(dim=1), p_b.diff(dim=1), tol)
