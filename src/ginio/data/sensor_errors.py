"""What a cheap IMU, its radio and a motion capture system do to a perfect measurement.

The defaults are those of a Crazyflie's BMI088 in NanoBench: noise and turn-on bias from the still
seconds, vibration from flight, packet loss, tilt and lag as that dataset's flights show them.
"""

import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from ginio.data.quadrotor import Instants, Waves
from ginio.geometry import so3

# Specific force, then angular rate, in the sensor frame.
Samples = Float64[Tensor, "time 6"]

# Mean run of lost packets, where runs are longer than chance has them.
MEAN_HOLE = 1.5
# The error of an attitude filter sways with periods of 4 to 30 s.
SWAY_HZ = (1 / 30, 1 / 4)
SWAY_TERMS = 4


@dataclass(frozen=True, kw_only=True)
class SensorErrors:
    """Sizes of all errors; every one vanishes at zero. Ranges hold for flights, uniformly.

    "std" is a standard deviation from flight to flight and axis to axis. White noise of density σ
    has the standard deviation ``σ √rate`` in a sample. Which errors are drawn depends neither on
    their sizes nor on other errors.
    """

    acc_noise: float = 1.4e-3
    """Density of white noise, m/s²/√Hz."""
    gyr_noise: float = 2.4e-4
    """Density of white noise, rad/s/√Hz."""
    acc_vibration: float = 0.05
    """White noise in hover, m/s² in a sample; grows with the thrust."""
    gyr_vibration: float = 0.008
    """White noise in hover, rad/s in a sample; grows with the thrust."""
    acc_bias: float = 0.03
    """Std of the bias at the start, m/s²."""
    gyr_bias: float = 5.0e-4
    """Std of the bias at the start, rad/s: the firmware has removed most of it."""
    acc_walk: float = 3.0e-3
    """Random walk of the bias, m/s²/√s."""
    gyr_walk: float = 2.0e-4
    """Random walk of the bias, rad/s/√s."""
    scale: float = 0.005
    """Std of the relative error of each axis."""
    misalignment: float = 0.005
    """Std of what one axis sees of each other."""
    arriving: tuple[float, float] = (0.74, 1.0)
    """Range of the part of the packets that arrive. Straight lines replace the others."""
    longest_hole_s: float = 0.1
    """Longest time between two packets that arrive next to each other."""
    is_unsynchronised: bool = True
    """Whether the packets' instants lie anywhere between those of the recording's clock, onto
    which they are interpolated."""
    tilt: tuple[float, float] = (math.radians(0.5), math.radians(4.0))
    """Range of the angle between the frames of IMU and truth, about a level axis."""
    lag: tuple[float, float] = (-0.015, 0.015)
    """Range of the seconds by which the IMU is late against the truth."""
    onboard_tilt: tuple[float, float] = (math.radians(1.0), math.radians(3.0))
    """Range of the root mean square of the onboard attitude's tilt error."""
    onboard_drift: float = 1.0e-3
    """Std of the rate at which the onboard heading drifts, rad/s."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "lag" and np.min(getattr(self, field.name)) < 0:
                found = getattr(self, field.name)
                raise ValueError(f"{field.name} must not be negative; found {found}")
        for name in ("arriving", "tilt", "lag", "onboard_tilt"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} must be a range from low to high; found {low}, {high}")
        if not 0.5 <= self.arriving[0] <= self.arriving[1] <= 1:
            raise ValueError(f"arriving must lie in 0.5 to 1; found {self.arriving}")

    @classmethod
    def none(cls) -> "SensorErrors":
        """A perfect sensor, link and motion capture system."""
        return cls(
            acc_noise=0.0,
            gyr_noise=0.0,
            acc_vibration=0.0,
            gyr_vibration=0.0,
            acc_bias=0.0,
            gyr_bias=0.0,
            acc_walk=0.0,
            gyr_walk=0.0,
            scale=0.0,
            misalignment=0.0,
            arriving=(1.0, 1.0),
            is_unsynchronised=False,
            tilt=(0.0, 0.0),
            lag=(0.0, 0.0),
            onboard_tilt=(0.0, 0.0),
            onboard_drift=0.0,
        )

    def disturbed(
        self, samples: Samples, load: Instants, rate_hz: float, rng: np.random.Generator
    ) -> Samples:
        """Perfect samples seen through scale, misalignment, bias and noise.

        Args:
            samples: specific force and angular rate.
            load: thrust over weight, to which vibration is proportional.
            rate_hz: samples a second.
            rng: source of the errors.
        """
        off = 1 - np.eye(3)
        mixing = self.scale * rng.normal(size=(2, 3, 1)) * np.eye(3)
        mixing += self.misalignment * rng.normal(size=(2, 3, 3)) * off
        acc, gyr = torch.from_numpy(np.eye(3) + mixing).mT
        bias = _pair(self.acc_bias, self.gyr_bias) * _normal(rng, 1)
        walk = _pair(self.acc_walk, self.gyr_walk) * _normal(rng, len(samples)).cumsum(0)
        noise = _pair(self.acc_noise, self.gyr_noise) * _normal(rng, len(samples))
        vibration = _pair(self.acc_vibration, self.gyr_vibration) * _normal(rng, len(samples))
        seen = torch.cat((samples[:, :3] @ acc, samples[:, 3:] @ gyr), dim=-1)
        steady = seen + bias + walk / math.sqrt(rate_hz)
        return steady + math.sqrt(rate_hz) * noise + load.unsqueeze(-1) * vibration

    def tilted(
        self, R_wb: Float64[Tensor, "time 3 3"], rng: np.random.Generator
    ) -> Float64[Tensor, "time 3 3"]:
        """The attitude of the frame that motion capture takes for the sensor's."""
        angle, direction = rng.uniform(*self.tilt), rng.uniform(-math.pi, math.pi)
        axis = np.array([math.cos(direction), math.sin(direction), 0.0])
        return R_wb @ so3.exp(torch.from_numpy(angle * axis))

    def estimated(
        self, t: Instants, R_wb: Float64[Tensor, "time 3 3"], rng: np.random.Generator
    ) -> Float64[Tensor, "time 3 3"]:
        """An attitude with the errors of an onboard filter: tilt that sways, heading that drifts.

        The errors are rotations in the world. The heading is right at the start.
        """
        frequency = 2 * math.pi * torch.from_numpy(rng.uniform(*SWAY_HZ, SWAY_TERMS))
        waves = Waves.noise(frequency, 2, rng)
        mean_square = (waves.sine.square() + waves.cosine.square()).sum() / 2
        sway_w = rng.uniform(*self.onboard_tilt) / mean_square.sqrt() * waves.at(t)[0]
        drift_w = self.onboard_drift * rng.normal() * (t - t[0])
        return so3.exp(torch.cat((sway_w, drift_w.unsqueeze(-1)), dim=-1)) @ R_wb


@dataclass(frozen=True, slots=True)
class Link:
    """The packets of one flight: when each was sampled, and whether it arrived."""

    t: Float64[Tensor, " packet"]
    arrived: Bool[Tensor, " packet"]
    lag: float
    """What happened at ``t - lag`` is in the packet stamped ``t``."""

    def received(self, samples: Float64[Tensor, "packet 6"], t: Instants) -> Samples:
        """Straight lines between the packets that arrived, read at other instants."""
        stamps, kept = self.t[self.arrived], samples[self.arrived]
        after = torch.searchsorted(stamps, t, right=True).clamp(1, len(stamps) - 1)
        before = after - 1
        part = ((t - stamps[before]) / (stamps[after] - stamps[before])).unsqueeze(-1)
        return torch.lerp(kept[before], kept[after], part)


def draw_link(errors: SensorErrors, rows: int, rate_hz: float, rng: np.random.Generator) -> Link:
    """Packets that cover rows of a regular clock beginning at zero; those at both ends arrive."""
    lag, arriving, phase = rng.uniform(*errors.lag), rng.uniform(*errors.arriving), rng.uniform()
    first = phase - 1 if errors.is_unsynchronised else 0.0
    t = (torch.arange(rows + 1, dtype=torch.float64) + first) / rate_hz
    # A hole of n packets lasts n + 1 periods.
    longest = max(math.floor(errors.longest_hole_s * rate_hz + 1e-9) - 1, 0)
    lost = np.minimum(rng.geometric(1 / MEAN_HOLE, len(t)), longest if arriving < 1 else 0)
    chance_of_hole = (1 - arriving) / arriving / max(lost.mean(), 1)
    kept = np.minimum(rng.geometric(max(chance_of_hole, 1e-9), len(t)), len(t))
    runs = np.stack((kept, lost), axis=1).ravel()
    arrived = np.repeat(np.tile([True, False], len(t)), runs)[: len(t)]
    arrived[:3] = arrived[-3:] = True
    return Link(t, torch.from_numpy(arrived), lag)


def _pair(acc: float, gyr: float) -> Float64[Tensor, " 6"]:
    return torch.tensor([acc] * 3 + [gyr] * 3, dtype=torch.float64)


def _normal(rng: np.random.Generator, rows: int) -> Float64[Tensor, "rows 6"]:
    return torch.from_numpy(rng.normal(size=(rows, 6)))
