import torch
from scipy.spatial.transform import Rotation
from strategies import Sampler, assert_near, each_sampler, rotations
from torch import Tensor

from ginio.core.sensor import gravity_w, inertial_measurements

G = 9.80665
RADIUS_M, RATE_RADPS, TILT_RAD = 2.0, 1.5, 0.4


def no_error(dtype: torch.dtype) -> Tensor:
    return torch.zeros(1, 3, dtype=dtype)


def circle(t: Tensor) -> tuple[Tensor, Tensor]:
    """Position and attitude of a body that banks on a circle, nose along the path."""
    angle = RATE_RADPS * t
    p_w = RADIUS_M * torch.stack((angle.cos(), angle.sin(), torch.zeros_like(t)), dim=-1)
    turn = Rotation.from_euler("z", angle[:, None].numpy()) * Rotation.from_euler("x", TILT_RAD)
    return p_w, torch.from_numpy(turn.as_matrix())


def rotation_vectors(R: Tensor) -> Tensor:
    return torch.from_numpy(Rotation.from_matrix(R.numpy()).as_rotvec())


@each_sampler
def test_a_sensor_at_rest_feels_one_gravity_up_in_any_mounting(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R_wb, R_sb = rotations(50, dtype), rotations(1, dtype, sampler)[0]
    still = torch.zeros(50, 3, dtype=dtype)
    acc_s, gyr_s = inertial_measurements(still, still, R_wb, R_sb, no_error(dtype), no_error(dtype))
    force_w = torch.einsum("tij,kj,tk->ti", R_wb, R_sb, acc_s)
    assert_near(force_w, torch.tensor([0.0, 0.0, G], dtype=dtype), 10 * tol)
    assert_near(gyr_s, still, 0)


def test_a_sensor_in_free_fall_feels_nothing(dtype: torch.dtype) -> None:
    still = torch.zeros(50, 3, dtype=dtype)
    fall = still - torch.tensor([0.0, 0.0, G], dtype=dtype)
    R_wb, R_sb = rotations(50, dtype), rotations(1, dtype)[0]
    acc_s, _ = inertial_measurements(fall, still, R_wb, R_sb, no_error(dtype), no_error(dtype))
    assert_near(acc_s, still, 0)


def test_gravity_points_down(dtype: torch.dtype) -> None:
    expected = torch.tensor([0.0, 0.0, -G], dtype=dtype)
    assert_near(gravity_w(torch.zeros(2, dtype=dtype)), expected, 0)


@each_sampler
def test_readings_are_the_derivatives_of_the_sensors_pose(sampler: Sampler) -> None:
    t, h = torch.linspace(0, 4, 101, dtype=torch.float64), 1e-4
    R_sb = rotations(1, torch.float64, sampler)[0]
    (before, R_before), (p_w, R_wb), (after, R_after) = circle(t - h), circle(t), circle(t + h)
    R_ws = R_wb @ R_sb.T
    gravity = torch.tensor([0.0, 0.0, -G], dtype=torch.float64)
    force_w = (before - 2 * p_w + after) / h**2 - gravity
    expected_acc = torch.einsum("tji,tj->ti", R_ws, force_w)
    expected_gyr = rotation_vectors((R_before @ R_sb.T).mT @ (R_after @ R_sb.T)) / (2 * h)

    omega_w = torch.tensor([0.0, 0.0, RATE_RADPS], dtype=torch.float64).expand(101, 3)
    omega_b = torch.einsum("tji,tj->ti", R_wb, omega_w)
    zero = no_error(torch.float64)
    acc_s, gyr_s = inertial_measurements(-(RATE_RADPS**2) * p_w, omega_b, R_wb, R_sb, zero, zero)
    assert_near(acc_s, expected_acc, 1e-6)
    assert_near(gyr_s, expected_gyr, 1e-7)


def test_strapdown_integration_of_the_readings_gives_the_circle_back() -> None:
    rate = 500
    t = torch.arange(2 * rate + 1, dtype=torch.float64) / rate
    p_w, R_wb = circle(t)
    middle, R_middle = circle(t[:-1] + 0.5 / rate)
    R_sb = rotations(1, torch.float64)[0]
    omega_w = torch.tensor([0.0, 0.0, RATE_RADPS], dtype=torch.float64).expand(2 * rate, 3)
    omega_b = torch.einsum("tji,tj->ti", R_middle, omega_w)
    zero = no_error(torch.float64)
    acc_s, gyr_s = inertial_measurements(
        -(RATE_RADPS**2) * middle, omega_b, R_middle, R_sb, zero, zero
    )
    R = Rotation.from_matrix((R_wb[0] @ R_sb.T).numpy())
    p, v = p_w[0], torch.tensor([0.0, RADIUS_M * RATE_RADPS, 0.0], dtype=torch.float64)
    for acc, gyr in zip(acc_s, gyr_s, strict=True):
        half = R * Rotation.from_rotvec((gyr / (2 * rate)).numpy())
        a_w = torch.from_numpy(half.apply(acc.numpy())) - torch.tensor([0.0, 0.0, G])
        p, v = p + v / rate + a_w / (2 * rate**2), v + a_w / rate
        R = R * Rotation.from_rotvec((gyr / rate).numpy())
    assert_near(p, p_w[-1], 1e-5)
    assert_near(torch.from_numpy(R.as_matrix()) @ R_sb, R_wb[-1], 1e-9)


def test_errors_are_added_in_the_sensor_frame(dtype: torch.dtype, tol: float) -> None:
    acc_w, omega_b, error_acc, error_gyr = torch.randn(4, 20, 3, dtype=dtype)
    R_wb, R_sb, zero = rotations(20, dtype), rotations(1, dtype)[0], no_error(dtype)
    clean = inertial_measurements(acc_w, omega_b, R_wb, R_sb, zero, zero)
    noisy = inertial_measurements(acc_w, omega_b, R_wb, R_sb, error_acc, error_gyr)
    assert_near(noisy[0] - clean[0], error_acc, tol)
    assert_near(noisy[1] - clean[1], error_gyr, tol)
