import math

import pytest
import torch
from scipy.spatial.transform import Rotation
from strategies import (
    Sampler,
    assert_near,
    assert_rotations,
    each_sampler,
    rotations,
    scipy_matrices,
    unit_vectors,
    yaw_matrices,
)
from torch import Tensor

from ginio.geometry import frames, so3

BATCH, TIME = 40, 6


def attitudes(dtype: torch.dtype, sampler: Sampler | None = None) -> Tensor:
    flat = rotations(BATCH * TIME, dtype, sampler) if sampler else rotations(BATCH * TIME, dtype)
    return flat.reshape(BATCH, TIME, 3, 3)


def yaws(count: int, dtype: torch.dtype) -> Tensor:
    return yaw_matrices((2 * torch.rand(count, dtype=torch.float64) - 1) * math.pi).to(dtype)


def euler_attitudes(*, yaw: Tensor, pitch: Tensor, roll: Tensor) -> Tensor:
    angles = torch.stack(torch.broadcast_tensors(yaw, pitch, roll), dim=-1)
    return torch.from_numpy(Rotation.from_euler("ZYX", angles.numpy()).as_matrix())


def euler_yaw_rotation(R_ws: Tensor) -> Tensor:
    return yaw_matrices(torch.atan2(R_ws[..., 1, 0], R_ws[..., 0, 0]))


def steepest_slope(heading: Sampler, pitch_deg: float) -> float:
    """Largest move of a heading over the move of the attitude, across a vertical sensor axis."""
    yaw, roll = (2 * math.pi * torch.rand(2, 500, dtype=torch.float64)).unbind()
    pitch = torch.full((), math.radians(pitch_deg), dtype=torch.float64)
    half_step = 1e-5
    before = euler_attitudes(yaw=yaw, pitch=pitch - half_step, roll=roll)
    after = euler_attitudes(yaw=yaw, pitch=pitch + half_step, roll=roll)
    moved = (heading(after) - heading(before)).norm(dim=(-2, -1))
    return float((moved / (after - before).norm(dim=(-2, -1))).max())


@each_sampler
def test_last_frame_alignment_is_the_inverse_of_the_last_attitude_times_the_world(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R_ws, signal_s = attitudes(dtype, sampler), torch.randn(BATCH, TIME, 3, dtype=dtype)
    signal_w = torch.einsum("btij,btj->bti", R_ws, signal_s)
    assert_near(frames.align_to_world(signal_s, R_ws), signal_w, tol)
    expected = torch.einsum("bji,btj->bti", R_ws[:, -1], signal_w)
    assert_near(frames.align_to_last_frame(signal_s, R_ws), expected, tol)


@each_sampler
def test_last_frame_alignment_does_not_see_the_world_frame(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R_ws, signal_s = attitudes(dtype), torch.randn(BATCH, TIME, 3, dtype=dtype)
    R_vw = rotations(BATCH, dtype, sampler).unsqueeze(1)
    aligned = frames.align_to_last_frame(signal_s, R_ws)
    assert_near(frames.align_to_last_frame(signal_s, R_vw @ R_ws), aligned, tol)


def test_last_frame_alignment_leaves_the_last_sample(dtype: torch.dtype, tol: float) -> None:
    R_ws, signal_s = attitudes(dtype), torch.randn(BATCH, TIME, 3, dtype=dtype)
    assert_near(frames.align_to_last_frame(signal_s, R_ws)[:, -1], signal_s[:, -1], tol)


def test_last_frame_rotations_end_with_the_identity(dtype: torch.dtype, tol: float) -> None:
    R_ls = frames.last_frame_rotations(attitudes(dtype))
    assert_rotations(R_ls, tol)
    assert_near(R_ls[:, -1], torch.eye(3, dtype=dtype), tol)


def test_a_signal_is_turned_by_one_rotation_or_by_many(dtype: torch.dtype, tol: float) -> None:
    R, signal = rotations(BATCH, dtype), torch.randn(BATCH, TIME, 3, dtype=dtype)
    common = frames.rotate_signal(R.unsqueeze(1), signal)
    each = frames.rotate_signal(R.unsqueeze(1).repeat(1, TIME, 1, 1), signal)
    assert_near(common, torch.einsum("bij,btj->bti", R, signal), tol)
    assert_near(each, common, tol)


def test_rotate_tensor_is_a_congruence(dtype: torch.dtype, tol: float) -> None:
    R, tensor = rotations(BATCH, dtype), torch.randn(BATCH, 3, 3, dtype=dtype)
    expected = torch.einsum("bij,bjk,blk->bil", R, tensor, R)
    assert_near(frames.rotate_tensor(R, tensor), expected, tol)


@each_sampler
def test_heading_is_a_rotation_about_the_vertical(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R_wg = frames.yaw_rotation(rotations(BATCH, dtype, sampler))
    z = torch.tensor([0.0, 0.0, 1.0], dtype=dtype)
    assert_rotations(R_wg, tol)
    assert_near(R_wg[..., 2], z, 0)
    assert_near(R_wg[..., 2, :], z, 0)


def test_heading_is_the_twist_of_the_quaternion(dtype: torch.dtype, tol: float) -> None:
    R_ws = rotations(BATCH, torch.float64)
    x, y, z, w = torch.from_numpy(Rotation.from_matrix(R_ws.numpy()).as_quat()).unbind(-1)
    upright = x.square() + y.square() < 0.9
    expected = yaw_matrices(2 * torch.atan2(z, w))[upright].to(dtype)
    assert_near(frames.yaw_rotation(R_ws[upright].to(dtype)), expected, 10 * tol)


def test_heading_is_the_nearest_rotation_about_the_vertical(dtype: torch.dtype, tol: float) -> None:
    R_ws = rotations(BATCH, dtype)
    rivals = yaw_matrices(torch.linspace(-math.pi, math.pi, 721).double()).to(dtype)
    nearest = (frames.yaw_rotation(R_ws) - R_ws).norm(dim=(-2, -1))
    distances = (rivals.unsqueeze(1) - R_ws).norm(dim=(-2, -1))
    assert (nearest <= distances + tol).all()


def test_removing_the_heading_twice_is_removing_it_once(dtype: torch.dtype, tol: float) -> None:
    R_gs = frames.remove_yaw(rotations(BATCH, dtype))
    assert_near(frames.yaw_rotation(R_gs), torch.eye(3, dtype=dtype), 10 * tol)
    assert_near(frames.remove_yaw(R_gs), R_gs, 10 * tol)


def test_removing_the_heading_keeps_the_vertical(dtype: torch.dtype, tol: float) -> None:
    R_ws = rotations(BATCH, dtype)
    assert_near(frames.remove_yaw(R_ws)[:, 2], R_ws[:, 2], tol)


def test_heading_turns_with_the_world(dtype: torch.dtype, tol: float) -> None:
    R_ws, R_vw = rotations(BATCH, dtype), yaws(BATCH, dtype)
    assert_near(frames.yaw_rotation(R_vw @ R_ws), R_vw @ frames.yaw_rotation(R_ws), 10 * tol)
    assert_near(frames.remove_yaw(R_vw @ R_ws), frames.remove_yaw(R_ws), 10 * tol)


@pytest.mark.parametrize("pitch_deg", [-90.0, 90.0])
def test_heading_is_smooth_where_euler_angles_jump(pitch_deg: float) -> None:
    assert steepest_slope(euler_yaw_rotation, pitch_deg) > 1e3
    assert steepest_slope(frames.yaw_rotation, pitch_deg) < 2


@pytest.mark.parametrize("pitch_deg", [-90.0, 90.0])
def test_heading_has_a_bounded_jacobian_at_vertical_pitch(
    pitch_deg: float, dtype: torch.dtype
) -> None:
    yaw, roll = (2 * math.pi * torch.rand(2, 20, dtype=torch.float64)).unbind()
    pitch = torch.full((), math.radians(pitch_deg), dtype=torch.float64)
    for R_ws in euler_attitudes(yaw=yaw, pitch=pitch, roll=roll).to(dtype):
        jacobian = torch.autograd.functional.jacobian(frames.yaw_rotation, R_ws)
        assert float(torch.linalg.matrix_norm(jacobian.reshape(9, 9), ord=2)) < 2.01


@pytest.mark.parametrize("turn_deg", [0.0, 30.0, 90.0, 180.0])
def test_heading_upside_down_is_the_identity_with_a_finite_gradient(
    turn_deg: float, dtype: torch.dtype
) -> None:
    c, s = math.cos(math.radians(turn_deg)), math.sin(math.radians(turn_deg))
    R_ws = torch.tensor([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]], dtype=dtype)
    R_ws.requires_grad_()
    R_wg = frames.yaw_rotation(R_ws)
    (gradient,) = torch.autograd.grad((R_wg * torch.randn_like(R_wg)).sum(), R_ws)
    assert_near(R_wg, torch.eye(3, dtype=dtype), 0)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 9.81])
def test_level_takes_up_to_the_vertical(scale: float, dtype: torch.dtype, tol: float) -> None:
    up_s = unit_vectors(1000, dtype)
    up_s = up_s[up_s[:, 2] > -0.9]
    R_gs = frames.level(scale * up_s)
    assert_rotations(R_gs, tol)
    assert_near(so3.rotate(R_gs, up_s), torch.tensor([0.0, 0.0, 1.0], dtype=dtype), tol)


@each_sampler
def test_level_is_the_least_rotation(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    tilt = sampler(BATCH, torch.float64) * torch.tensor([0.9, 0.9, 0.0])
    up_s = scipy_matrices(tilt)[:, 2]
    expected = torch.atan2(up_s[:, :2].norm(dim=-1), up_s[:, 2])
    R_gs = frames.level(up_s.to(dtype))
    magnitude = Rotation.from_matrix(R_gs.double().numpy()).magnitude()
    assert_near(torch.from_numpy(magnitude).to(dtype), expected.to(dtype), 10 * tol)


@pytest.mark.parametrize("tilt", [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
def test_level_is_a_rotation_next_to_upside_down(
    tilt: float, dtype: torch.dtype, tol: float
) -> None:
    azimuth = 2 * math.pi * torch.rand(BATCH, dtype=torch.float64)
    side = math.sin(tilt)
    up_s = torch.stack(
        (side * azimuth.cos(), side * azimuth.sin(), torch.full_like(azimuth, -math.cos(tilt))),
        dim=-1,
    ).to(dtype)
    R_gs = frames.level(up_s)
    assert_rotations(R_gs, tol)
    assert_near(so3.rotate(R_gs, up_s), torch.tensor([0.0, 0.0, 1.0], dtype=dtype), tol)


def test_level_exactly_upside_down_is_a_half_turn(dtype: torch.dtype, tol: float) -> None:
    up_s = torch.tensor([0.0, 0.0, -9.81], dtype=dtype, requires_grad=True)
    R_gs = frames.level(up_s)
    (gradient,) = torch.autograd.grad((R_gs * torch.randn_like(R_gs)).sum(), up_s)
    assert_rotations(R_gs, tol)
    assert_near(so3.rotate(R_gs, up_s), torch.tensor([0.0, 0.0, 9.81], dtype=dtype), tol)
    assert torch.isfinite(gradient).all()


def test_level_agrees_with_the_heading_free_attitude(dtype: torch.dtype, tol: float) -> None:
    R_ws = rotations(BATCH, dtype)
    R_ws = R_ws[R_ws[:, 2, 2] > -0.9]
    assert_near(frames.level(R_ws[:, 2]), frames.remove_yaw(R_ws), 10 * tol)


@each_sampler
def test_attitude_vectors_are_the_world_axes_seen_from_the_sensor(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R_ws = rotations(BATCH, dtype, sampler)
    vectors = frames.attitude_vectors(R_ws)
    for i, axis in enumerate(torch.eye(3, dtype=dtype)):
        conjugate = R_ws.mT @ scipy_matrices(axis.unsqueeze(0)) @ R_ws
        assert_near(vectors[:, i], so3.log(conjugate), tol)


@each_sampler
def test_attitude_vectors_turn_as_vectors_under_a_remount(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R_ws, R_ms = rotations(BATCH, dtype), rotations(BATCH, dtype, sampler)
    remounted = frames.attitude_vectors(R_ws @ R_ms.mT)
    expected = torch.einsum("bij,bkj->bki", R_ms, frames.attitude_vectors(R_ws))
    assert_near(remounted, expected, tol)


def test_the_rotation_vector_itself_does_not_turn_under_a_remount() -> None:
    R_ws, R_ms = rotations(2, torch.float64).unsqueeze(1)
    remounted, expected = so3.log(R_ws @ R_ms.mT), so3.rotate(R_ms, so3.log(R_ws))
    assert (remounted - expected).norm() > 0.1
