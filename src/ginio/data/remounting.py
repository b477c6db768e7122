"""What an IMU records after it was taken off and put on again, from what it recorded before.

A change of direction is the least of it. Switched on again the sensor has another bias; no two
mountings bring its axes to the same place; it sits elsewhere on the body, and feels that; and its
samples are not as late as they were. The reference does not move with it: the path remains that of
the point which was tracked.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from ginio.core.recording import ImuSequence, Recording
from ginio.data.sensor_errors import SensorErrors
from ginio.geometry import so3

Signal = Float64[Tensor, "time 3"]
Stamps = Float64[Tensor, " time"]
# A Gaussian is cut off after this many of its standard deviations.
REACH = 4.0


@dataclass(frozen=True, kw_only=True)
class RemountConfig:
    """Sizes of all that changes beside the direction; each vanishes at zero.

    The defaults are a Crazyflie's: its sensor's turn-on bias, scale and misalignment, a board moved
    by two centimetres, and a radio link that is late by another part of a sample.
    """

    acc_bias: float = 0.03
    """Std of the new turn-on bias, m/s²."""
    gyr_bias: float = 5.0e-3
    """Std of the new turn-on bias, rad/s; nobody calibrates before a flight."""
    scale: float = 0.005
    """Std of the relative error of each axis."""
    misalignment: float = 0.005
    """Std of what one axis sees of each other."""
    lever_m: float = 0.02
    """Distance by which the sensor was moved, in a random direction."""
    delay_s: float = 5.0e-3
    """Half width of the range of the new delay against the reference."""
    smoothing_s: float = 0.02
    """Std of the Gaussian that smooths angular rates before they are differentiated."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0:
                raise ValueError(f"{name} must not be negative; found {value}")

    @classmethod
    def rotation_only(cls) -> "RemountConfig":
        """Nothing changes but the direction."""
        return cls(
            acc_bias=0.0, gyr_bias=0.0, scale=0.0, misalignment=0.0, lever_m=0.0, delay_s=0.0
        )

    @property
    def errors(self) -> SensorErrors:
        """The sensor's own part of it; it makes no new noise."""
        return replace(
            SensorErrors.none(),
            acc_bias=self.acc_bias,
            gyr_bias=self.gyr_bias,
            scale=self.scale,
            misalignment=self.misalignment,
        )


def remount(
    recording: Recording,
    R_ms: Float[Tensor, "3 3"],
    config: RemountConfig,
    rng: np.random.Generator,
) -> Recording:
    """The same flight with the sensor put on again, turned by ``R_ms``.

    Sizes do not decide which random numbers are drawn, so errors can be switched one by one.
    """
    lever_s = torch.from_numpy(rng.normal(size=3))
    lever_s = config.lever_m * lever_s / lever_s.norm()
    delay_s = config.delay_s * rng.uniform(-1, 1)
    imu = recording.imu
    acc_s, gyr_s = imu.acc_s.double(), imu.gyr_s.double()
    if config.lever_m:
        acc_s = acc_s + lever_acceleration(imu.t, gyr_s, lever_s, config.smoothing_s)
    samples = torch.cat((acc_s @ R_ms.double().mT, gyr_s @ R_ms.double().mT), dim=-1)
    rate_hz = 1 / float(imu.t.diff().median())
    samples = config.errors.disturbed(samples, torch.zeros_like(imu.t), rate_hz, rng)
    samples = delayed(imu.t, samples, delay_s).to(imu.acc_s)
    turned = recording.remounted(R_ms.to(imu.acc_s))
    return replace(turned, imu=ImuSequence(imu.t, samples[:, :3], samples[:, 3:]))


def lever_acceleration(
    t: Stamps, gyr_s: Signal, lever_s: Float64[Tensor, " 3"], smoothing_s: float
) -> Signal:
    """What a sensor feels more at ``lever_s`` from where it was: ``ω̇ × r + ω × (ω × r)``.

    The rate is smoothed before it is differentiated and squared, or its noise would be felt as
    acceleration.
    """
    omega_s = smoothed(t, gyr_s, smoothing_s)
    (alpha_s,) = torch.gradient(omega_s, spacing=(t,), dim=0)
    r = lever_s.expand_as(omega_s)
    tangential = torch.linalg.cross(alpha_s, r)
    centripetal = torch.linalg.cross(omega_s, torch.linalg.cross(omega_s, r))
    return tangential + centripetal


def smoothed(t: Stamps, signal: Signal, std_s: float) -> Signal:
    """A Gaussian average through time, the ends repeated."""
    std = std_s / float(t.diff().median())
    reach = math.ceil(REACH * std)
    if reach == 0:
        return signal
    steps = torch.arange(-reach, reach + 1, dtype=torch.float64)
    kernel = torch.exp(-0.5 * (steps / std).square())
    padded = nn.functional.pad(signal.mT.unsqueeze(1), (reach, reach), mode="replicate")
    weights = (kernel / kernel.sum()).view(1, 1, -1)
    return nn.functional.conv1d(padded, weights).squeeze(1).mT


def delayed(
    t: Stamps, samples: Float64[Tensor, "time channel"], delay_s: float
) -> Float64[Tensor, "time channel"]:
    """What was measured at ``t - delay_s``, by straight lines; the ends are repeated."""
    if delay_s == 0:
        return samples
    then = (t - delay_s).clamp(float(t[0]), float(t[-1]))
    after = torch.searchsorted(t, then, right=True).clamp(1, len(t) - 1)
    part = ((then - t[after - 1]) / (t[after] - t[after - 1])).unsqueeze(-1)
    return torch.lerp(samples[after - 1], samples[after], part)


def mounting_rotation(up_m: Float[Tensor, " 3"]) -> Float[Tensor, "3 3"]:
    """``R_ms`` of least angle that takes the reaction to gravity from +z to a unit vector."""
    up_s = torch.tensor([0.0, 0.0, 1.0], dtype=up_m.dtype)
    axis = torch.linalg.cross(up_s, up_m)
    sine, cosine = so3.length(axis), torch.dot(up_s, up_m)
    return so3.exp(torch.atan2(sine, cosine) * axis / sine.clamp(min=1e-12))
