"""Samples on which the laws are tried: easy ones, and ones next to each singular set.

Rotations are made by scipy, so that the package is not checked against itself.
"""

import math
from collections.abc import Callable

import pytest
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from ginio.core.measurement import Covariance
from ginio.core.recording import ImuSequence, Recording, Trajectory
from ginio.core.sensor import inertial_measurements
from ginio.geometry import so3

Sampler = Callable[[int, torch.dtype], Tensor]


def unit_vectors(count: int, dtype: torch.dtype) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(count, 3, dtype=torch.float64), dim=-1).to(
        dtype
    )


def uniform(count: int, dtype: torch.dtype) -> Tensor:
    """Rotation vectors of rotations uniform in the Haar measure."""
    quaternions = torch.randn(count, 4, dtype=torch.float64).numpy()
    return torch.from_numpy(Rotation.from_quat(quaternions).as_rotvec()).to(dtype)


def near_identity(count: int, dtype: torch.dtype) -> Tensor:
    """Rotation vectors of length 1e-7."""
    return 1e-7 * unit_vectors(count, dtype)


def near_half_turn(count: int, dtype: torch.dtype) -> Tensor:
    """Rotation vectors within 1e-7 of length π, the first six exactly there."""
    axis = unit_vectors(count, torch.float64)
    axis[:3] = torch.eye(3)[:count]
    shortfall = 1e-7 * torch.rand(count, 1, dtype=torch.float64)
    shortfall[:6] = 0
    return ((math.pi - shortfall) * axis).to(dtype)


SAMPLERS = (uniform, near_identity, near_half_turn)
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS, ids=[s.__name__ for s in SAMPLERS])


def scipy_matrices(phi: Tensor) -> Tensor:
    return torch.from_numpy(Rotation.from_rotvec(phi.double().numpy()).as_matrix()).to(phi.dtype)


def rotations(count: int, dtype: torch.dtype, sampler: Sampler = uniform) -> Tensor:
    return scipy_matrices(sampler(count, torch.float64)).to(dtype)


def yaw_matrices(yaw: Tensor) -> Tensor:
    return scipy_matrices(torch.stack((0 * yaw, 0 * yaw, yaw), dim=-1))


def covariances(count: int, dtype: torch.dtype) -> Covariance:
    return Covariance(rotations(count, dtype), 0.5 * torch.randn(count, 3, dtype=dtype))


def recording(samples: int, dtype: torch.dtype, *, spread: float = 1.0) -> Recording:
    """Signals and truth without a physical relation: enough for laws of frames.

    With a small ``spread`` the attitudes stay off the one place where no heading exists.
    """
    t = 0.01 * torch.arange(samples, dtype=torch.float64)
    acc_s, gyr_s, p_w, v_w = torch.randn(4, samples, 3, dtype=dtype).unbind()
    truth = Trajectory(
        t, scipy_matrices(spread * uniform(samples, torch.float64)).to(dtype), p_w, v_w
    )
    return Recording("random", ImuSequence(t, acc_s, gyr_s), truth)


def assert_near(actual: Tensor, expected: Tensor, tol: float) -> None:
    torch.testing.assert_close(actual, expected.expand_as(actual), rtol=0, atol=tol)


def assert_rotations(R: Tensor, tol: float) -> None:
    assert_near(R @ R.mT, torch.eye(3, dtype=R.dtype), tol)
    assert_near(torch.linalg.det(R), torch.ones((), dtype=R.dtype), tol)


def circling(seed: int, samples: int = 300, rate_hz: float = 25.0) -> Recording:
    """A circle in a tilted plane with a tumbling sensor."""
    generator = torch.Generator().manual_seed(seed)
    t = torch.arange(samples, dtype=torch.float64) / rate_hz
    radius, omega = 1.0, 0.8 + 0.4 * torch.rand((), generator=generator, dtype=torch.float64)
    tilt = so3.random(1, generator=generator, dtype=torch.float64)[0]
    c, s, o = (omega * t).cos(), (omega * t).sin(), torch.zeros_like(t)
    p_w = radius * torch.stack((c, s, o), -1) @ tilt.mT
    v_w = radius * omega * torch.stack((-s, c, o), -1) @ tilt.mT
    rate_s = torch.randn(3, generator=generator, dtype=torch.float64)
    R_ws = tilt @ so3.exp(rate_s * t.unsqueeze(-1))
    acc_s, gyr_s = inertial_measurements(
        -(omega**2) * p_w,
        rate_s.expand(samples, 3),
        R_ws,
        torch.eye(3, dtype=torch.float64),
        torch.zeros(1, 3, dtype=torch.float64),
        torch.zeros(1, 3, dtype=torch.float64),
    )
    return Recording(
        f"circle_{seed}",
        ImuSequence(t, acc_s.float(), gyr_s.float()),
        Trajectory(t, R_ws.float(), p_w.float(), v_w.float()),
    )
