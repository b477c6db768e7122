"""Frontends whose answers are known, and recordings that tell them the truth.

In a `telling` recording the angular rate is not that: it holds the true velocity in the sensor
frame, so that a frontend can be perfect, or wrong in exactly one way.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from strategies import rotations
from torch import Tensor

from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.core.recording import ImuSequence, Recording, Trajectory
from ginio.core.sensor import inertial_measurements
from ginio.core.window import Window
from ginio.geometry import so3
from ginio.geometry.projection import gram_schmidt

RATE_HZ = 25.0
LOG_STD = torch.tensor([-1.0, 0.0, 0.5], dtype=torch.float64)


@dataclass(frozen=True)
class Fake:
    """A frontend from two functions of the window, that remembers what it was asked."""

    mean: Callable[[Window], Tensor]
    axes: Callable[[Window], Tensor]
    quantity: Quantity = Quantity.VELOCITY
    asked: list[Tensor] = field(default_factory=list)

    def measure(self, window: Window) -> Measurement:
        self.asked.append(window.features())
        axes = self.axes(window)
        log_std = LOG_STD.to(axes).expand(axes.shape[:-1])
        return Measurement(self.mean(window), Covariance(axes, log_std), self.quantity)


def told(window: Window) -> Tensor:
    """The true velocity, in a window of a telling recording."""
    return window.gyr_f[:, -1]


def felt_axes(window: Window) -> Tensor:
    """Axes that turn with the window."""
    return gram_schmidt(window.acc_f[:, -1], window.gyr_f[:, 0])


def fixed_axes(window: Window) -> Tensor:
    return so3.identity_like(window.acc_f[:, 0])


def perfect() -> Fake:
    return Fake(told, felt_axes)


def anisotropic() -> Fake:
    """Right along two axes of the window's frame, and half right along the third."""
    return Fake(lambda window: told(window) * torch.tensor([1.0, 0.5, 1.0]), fixed_axes)


def vertical() -> Fake:
    """Takes up for down along the third axis: symmetric about it, and not otherwise."""
    return Fake(lambda window: told(window) * torch.tensor([1.0, 1.0, -1.0]), fixed_axes)


def stubborn(mean: Tensor) -> Fake:
    """One answer whatever the window."""
    return Fake(lambda window: mean.expand(len(window.acc_f), 3), fixed_axes)


def tumbling(seed: int, samples: int = 200, rate_hz: float = RATE_HZ) -> Recording:
    """Constant acceleration in the world, constant rate in a sensor that may hang any way."""
    generator = torch.Generator().manual_seed(seed)

    def vector(size: float) -> Tensor:
        return size * torch.randn(3, generator=generator, dtype=torch.float64)

    t = torch.arange(samples, dtype=torch.float64) / rate_hz
    acc_w, v_w, p_w, rate_s = vector(0.3), vector(1.0), vector(2.0), vector(0.8)
    R_ws = rotations(1, torch.float64) @ so3.exp(rate_s * t.unsqueeze(1))
    eye, none = torch.eye(3, dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)
    every = acc_w.expand(samples, 3), rate_s.expand(samples, 3)
    acc_s, gyr_s = inertial_measurements(*every, R_ws, eye, none, none)
    s = t.unsqueeze(1)
    truth = Trajectory(t, R_ws, p_w + v_w * s + 0.5 * acc_w * s**2, v_w + acc_w * s)
    return Recording(f"tumbling_{seed}", ImuSequence(t, acc_s, gyr_s), truth)


def telling(seed: int, samples: int = 200) -> Recording:
    made = tumbling(seed, samples)
    truth = made.truth
    v_s = so3.rotate(truth.R_ws.mT, truth.v_w)
    return replace(made, imu=replace(made.imu, gyr_s=v_s))


def round_and_round(samples: int = 400, radius: float = 2.0) -> Recording:
    """One whole horizontal circle in 16 s, the last sample a step before the first."""
    t = torch.arange(samples, dtype=torch.float64) / RATE_HZ
    omega = 2 * math.pi * RATE_HZ / samples
    c, s, o = (omega * t).cos(), (omega * t).sin(), torch.zeros_like(t)
    R_ws = so3.about_z(omega * t)
    p_w, v_w = (torch.stack(x, -1) for x in ((c, s, o), (-s, c, o)))
    imu = ImuSequence(t, torch.zeros(samples, 3).double(), torch.zeros(samples, 3).double())
    return Recording("circle", imu, Trajectory(t, R_ws, radius * p_w, radius * omega * v_w))
