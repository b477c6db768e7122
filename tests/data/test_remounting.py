"""A remounted sensor against rigid bodies whose motion is known in closed form."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from strategies import assert_near, assert_rotations, rotations
from torch import Tensor

from ginio.core.recording import ImuSequence, Recording, Trajectory
from ginio.core.sensor import inertial_measurements
from ginio.data.remounting import (
    RemountConfig,
    delayed,
    lever_acceleration,
    mounting_rotation,
    remount,
    smoothed,
)
from ginio.geometry import so3

NOTHING = RemountConfig.rotation_only()
LEVER = torch.tensor([0.05, -0.02, 0.03], dtype=torch.float64)
T = torch.arange(1000, dtype=torch.float64) / 100


def rocking() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A body that rocks about a fixed axis: attitude, rate, and its derivatives, exactly."""
    axis = torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64)
    s = (1.3 * T).unsqueeze(-1)
    return so3.exp(s.sin() * axis), 1.3 * s.cos() * axis, -(1.3**2) * s.sin() * axis, axis


def flight(acc_w: Tensor) -> Recording:
    R_wb, omega_b, _, _ = rocking()
    eye, none = torch.eye(3).double(), torch.zeros(1, 3).double()
    acc_s, gyr_s = inertial_measurements(acc_w, omega_b, R_wb, eye, none, none)
    still = torch.zeros(len(T), 3).double()
    return Recording("rocking", ImuSequence(T, acc_s, gyr_s), Trajectory(T, R_wb, still, still))


def made(config: RemountConfig, R_ms: Tensor | None = None, seed: int = 0) -> Recording:
    eye = torch.eye(3).double()
    return remount(
        flight(torch.zeros(len(T), 3).double()),
        eye if R_ms is None else R_ms,
        config,
        np.random.default_rng(seed),
    )


def test_the_lever_arm_agrees_with_the_motion_of_a_rigid_body() -> None:
    """The second derivative of where the point is, taken of its path, against ω̇×r + ω×(ω×r)."""
    R_wb, omega_b, alpha_b, _ = rocking()
    found = lever_acceleration(T, omega_b, LEVER, 0.0)
    exact = torch.linalg.cross(alpha_b, LEVER.expand_as(alpha_b))
    exact += torch.linalg.cross(omega_b, torch.linalg.cross(omega_b, LEVER.expand_as(omega_b)))
    inner = slice(5, -5)
    assert_near(found[inner], exact[inner], 1e-4)
    p_w = so3.rotate(R_wb, LEVER.expand(len(T), 3))
    acc_w = (p_w[2:] - 2 * p_w[1:-1] + p_w[:-2]) * 100**2
    from_path = so3.rotate(R_wb[1:-1].mT, acc_w)
    assert_near(found[1:-1][inner], from_path[inner], 1e-4)
    assert float(found.norm(dim=-1).max()) > 0.05


def test_a_remounted_flight_is_that_of_a_sensor_that_sits_there() -> None:
    """The whole of it: lever and rotation together, against the measurement model itself."""
    R_wb, omega_b, alpha_b, _ = rocking()
    config = replace(NOTHING, lever_m=0.1, smoothing_s=0.0)
    R_ms = rotations(1, torch.float64)[0]
    lever_b = torch.from_numpy(np.random.default_rng(0).normal(size=3))
    lever_b = 0.1 * lever_b / lever_b.norm()
    felt_b = torch.linalg.cross(alpha_b, lever_b.expand_as(alpha_b))
    felt_b += torch.linalg.cross(omega_b, torch.linalg.cross(omega_b, lever_b.expand_as(omega_b)))
    none = torch.zeros(1, 3).double()
    acc_m, gyr_m = inertial_measurements(so3.rotate(R_wb, felt_b), omega_b, R_wb, R_ms, none, none)
    found = made(config, R_ms)
    assert_near(found.imu.acc_s[5:-5], acc_m[5:-5], 1e-3)
    assert_near(found.imu.gyr_s, gyr_m, 1e-12)
    assert_near(found.truth.R_ws, R_wb @ R_ms.mT, 1e-12)
    assert torch.equal(found.truth.p_w, torch.zeros(len(T), 3).double())


def test_smoothing_keeps_the_lever_arm_from_noise() -> None:
    torch.manual_seed(0)
    _, omega_b, _, _ = rocking()
    noisy = omega_b + 0.02 * torch.randn(len(T), 3).double()
    exact = lever_acceleration(T, omega_b, LEVER, 0.0)
    rough, smooth = (
        float((lever_acceleration(T, noisy, LEVER, s) - exact)[20:-20].std()) for s in (0.0, 0.03)
    )
    assert smooth < 0.2 * rough


def test_an_average_through_time_keeps_straight_lines_and_its_own_width() -> None:
    line = torch.stack((T, -2 * T, 0 * T + 1), -1)
    assert_near(smoothed(T, line, 0.05)[40:-40], line[40:-40], 1e-9)
    pulse = torch.zeros(len(T), 3).double()
    pulse[500] = 1
    weights = smoothed(T, pulse, 0.05)[:, 0]
    assert float(weights.sum()) == pytest.approx(1)
    variance = float((weights * (T - T[500]).square()).sum())
    assert math.sqrt(variance) == pytest.approx(0.05, rel=0.01)


def test_nothing_but_the_direction_changes_if_nothing_else_is_asked_for() -> None:
    R_ms = rotations(1, torch.float64)[0]
    before = flight(torch.zeros(len(T), 3).double()).remounted(R_ms)
    found = made(NOTHING, R_ms)
    assert_near(found.imu.acc_s, before.imu.acc_s, 1e-12)
    assert_near(found.imu.gyr_s, before.imu.gyr_s, 1e-12)
    assert torch.equal(found.truth.R_ws, before.truth.R_ws)


SWITCHES = ("acc_bias", "gyr_bias", "scale", "misalignment", "lever_m", "delay_s")


@pytest.mark.parametrize("name", SWITCHES)
def test_every_change_can_be_switched_and_changes_what_it_says(name: str) -> None:
    size = getattr(RemountConfig(), name)
    before = flight(torch.zeros(len(T), 3).double()).imu
    found = made(replace(NOTHING, **{name: size})).imu
    acc, gyr = (
        (a - b).abs().max()
        for a, b in zip((found.acc_s, found.gyr_s), (before.acc_s, before.gyr_s), strict=True)
    )
    assert (float(acc) > 1e-6) == (name != "gyr_bias")
    assert (float(gyr) > 1e-6) == (name not in {"acc_bias", "lever_m"})


@pytest.mark.parametrize("name", SWITCHES)
def test_switching_one_change_does_not_draw_another_anew(name: str) -> None:
    """The rest of what changes is the same whether or not one of them is there."""
    everything = RemountConfig()
    without = made(replace(everything, **{name: 0.0})).imu
    again = made(replace(everything, **{name: 0.0})).imu
    whole = made(everything).imu
    assert torch.equal(without.acc_s, again.acc_s)
    change = (whole.acc_s - without.acc_s).norm(dim=-1).max()
    everywhere = (whole.acc_s - made(NOTHING).imu.acc_s).norm(dim=-1).max()
    assert float(change) < float(everywhere) + 1e-12


def test_biases_are_new_for_every_mounting() -> None:
    config = replace(NOTHING, acc_bias=0.1)
    base = made(NOTHING).imu.acc_s
    first, second = (made(config, seed=seed).imu.acc_s - base for seed in (1, 2))
    assert_near(first, first[0], 1e-12)
    assert not torch.allclose(first[0], second[0], atol=0.01)


def test_a_delay_shows_what_happened_before() -> None:
    line = torch.stack((T, T**2), -1)
    late = delayed(T, line, 0.025)
    assert_near(late[10:, 0], T[10:] - 0.025, 1e-12)
    assert_near(late[10:, 1], (T[10:] - 0.025) ** 2, 1e-4)
    early = delayed(T, line, -0.025)
    assert_near(early[:-10, 0], T[:-10] + 0.025, 1e-12)
    assert torch.equal(delayed(T, line, 0.0), line)


def test_gravity_lies_where_a_mounting_says() -> None:
    up_s = torch.tensor([0.0, 0.0, 1.0])
    for axis in torch.eye(3):
        for sign in (1.0, -1.0):
            if sign * float(axis[2]) < 0:
                continue
            R_ms = mounting_rotation(sign * axis)
            assert_rotations(R_ms.unsqueeze(0), 1e-6)
            assert_near(R_ms @ up_s, sign * axis, 1e-6)


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lever_m must not be negative; found -0\.1"):
        RemountConfig(lever_m=-0.1)
