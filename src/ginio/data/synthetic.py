"""Synthetic quadrotor flights: exact motion, and an IMU with the faults of a real one.

They stand in for recordings where nothing can be downloaded, and serve to train beforehand. Sizes,
speeds, drag and the faults of the sensor are those of NanoBench's Crazyflie; headings are not:
here a figure and a nose may point anywhere.
"""

import math
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from ginio.core.recording import ImuSequence, Recording, Trajectory
from ginio.core.sensor import inertial_measurements
from ginio.data.quadrotor import (
    STEP_STEEPEST,
    Jet,
    Motion,
    Numbers,
    Plan,
    Term,
    Timeline,
    Waves,
    bend,
)
from ginio.data.sensor_errors import SensorErrors, draw_link
from ginio.geometry import so3
from ginio.geometry.frames import GRAVITY_MPS2


class Shape(Enum):
    """The figure that is flown."""

    CIRCLE = "circle"
    FIGURE8 = "figure8"
    HELIX = "helix"
    OVAL = "oval"
    STAR = "star"
    TREFOIL = "trefoil"
    LISSAJOUS = "lissajous"
    RAMP = "ramp"
    WAYPOINTS = "waypoints"


class Speed(Enum):
    """How fast a figure is flown."""

    SLOW = "slow"
    MEDIUM = "medium"
    FAST = "fast"


# Mean speed along the figure, m/s.
SPEEDS_MPS = {Speed.SLOW: (0.3, 0.6), Speed.MEDIUM: (0.6, 1.2), Speed.FAST: (1.2, 2.5)}

NONE: Numbers = (0.0, 0.0, 0.0)
CIRCLE: Term = (1.0, (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
# Figures of unit width and unit height. Star: a hypotrochoid with five loops, whose tangent never
# vanishes. Helix: one climb and one descent in seven turns.
FIGURES: dict[Shape, tuple[Term, ...]] = {
    Shape.CIRCLE: (CIRCLE,),
    Shape.FIGURE8: ((1.0, (1.0, 0.0, 0.0), NONE), (2.0, (0.0, 0.5, 0.0), NONE)),
    Shape.HELIX: (CIRCLE, (0.15, (0.0, 0.0, 1.0), NONE)),
    Shape.OVAL: ((1.0, (0.0, 0.45, 0.0), (1.0, 0.0, 0.0)),),
    Shape.STAR: (
        (1.0, (0.0, 0.7, 0.0), (0.7, 0.0, 0.0)),
        (4.0, (0.0, -0.3, 0.0), (0.3, 0.0, 0.0)),
    ),
    Shape.TREFOIL: (
        (1.0, (1 / 3, 0.0, 0.0), (0.0, 1 / 3, 0.0)),
        (2.0, (2 / 3, 0.0, 0.0), (0.0, -2 / 3, 0.0)),
        (3.0, (0.0, 0.0, -1.0), NONE),
    ),
    Shape.LISSAJOUS: ((3.0, (1.0, 0.0, 0.0), NONE), (2.0, NONE, (0.0, 1.0, 0.0))),
    Shape.RAMP: ((1.0, (1.0, 0.0, 1.0), NONE),),
}

# Random figures: few slow terms of no common period, so that they turn smoothly and never repeat.
WAYPOINT_TERMS = 4
WAYPOINT_FREQUENCY = (0.4, 1.8)
# Part of a figure that is searched for its tightest curve, in radians: seven turns.
SURVEYED = 44.0

# A room with a motion capture system: half the width of a figure, heights over the ground within
# which a figure and its middle stay, the sensor over the ground while the vehicle stands, and how
# far from the middle of the room it starts.
SIZE_M = (0.3, 1.5)
HEIGHT_M = (0.3, 2.0)
MIDDLE_M = (0.5, 1.6)
GROUND_M = 0.05
START_M = 1.0
# A figure is flown more slowly than asked where its curves would take more than this. Together
# with drag and wobble it keeps the tilt below 60° and the rotors pushing upwards.
SIDEWAYS_LIMIT_MPS2 = 7.0
VERTICAL_LIMIT_MPS2 = 3.0
JERK_LIMIT_MPS3 = 50.0
# The nose follows the path only where that turns no faster, and never stops: part of the mean.
YAW_RATE_LIMIT = 4.0
SLOWEST_TANGENT = 0.2
TURN_RATE = 0.8

# As in NanoBench: seconds at rest, speed and length of climbs and descents, seconds in hover, mean
# acceleration into a figure with the seconds that takes, and the part of the flights that land.
REST_S = (2.0, 3.0)
CLIMB_MPS = (0.5, 1.2)
CLIMB_S = (1.2, 3.0)
HOVER_S = (0.0, 1.0)
STARTING_MPS2 = 4.0
STARTING_S = (1.0, 1.5)
LANDING = 0.9
# The shortest flight that has room for the longest rests, climb and descent.
SHORTEST_S = 15.0
# Part by which the drag of one flight differs from the next: battery, propellers.
DRAG_SPREAD = 0.1

# Small movements of a controlled Crazyflie, as in NanoBench: spectral densities of the angular rate
# about the level axes up to where it falls off, and at 1 Hz, falling with frequency, those of the
# angular rate about the vertical and of the vertical acceleration.
WOBBLE_TERMS = 24
WOBBLE_HZ = (0.8, 10.0)
WOBBLE_FALLS_OFF_HZ = 5.0
WOBBLE_RATE = 0.1
WOBBLE_YAW_RATE = 0.04
WOBBLE_CLIMB_MPS2 = 0.1


@dataclass(frozen=True, kw_only=True)
class QuadrotorConfig:
    """What kind of flights to make."""

    shapes: tuple[Shape, ...] = tuple(Shape)
    speeds: tuple[Speed, ...] = tuple(Speed)
    duration_s: float = 30.0
    rate_hz: float = 100.0
    drag: tuple[float, float, float] = (0.38, 0.39, 0.0)
    """Linear rotor drag over mass along the body's axes, 1/s; fitted to NanoBench."""
    wobble: float = 1.0
    """Size of the small movements of a controlled vehicle, 1 for those of a Crazyflie."""
    errors: SensorErrors = field(default_factory=SensorErrors)

    def __post_init__(self) -> None:
        for name, kind in (("shapes", Shape), ("speeds", Speed)):
            found = getattr(self, name)
            if not found or not all(isinstance(x, kind) for x in found):
                raise ValueError(f"{name} must hold one {kind.__name__} or more; found {found}")
        if self.duration_s < SHORTEST_S:
            raise ValueError(f"duration_s must be {SHORTEST_S} or more; found {self.duration_s}")
        if self.rate_hz <= 0:
            raise ValueError(f"rate_hz must be above zero; found {self.rate_hz}")
        if min(*self.drag, self.wobble) < 0:
            raise ValueError(
                f"drag and wobble must not be negative; found {self.drag}, {self.wobble}"
            )


def fly(config: QuadrotorConfig, count: int, *, seed: int) -> list[Recording]:
    """Flights named like ``circle_fast_0007``; the truth is on the clock of the IMU.

    Shapes and speeds take turns. A flight depends on the config, the seed and its own number only,
    and its motion on neither ``rate_hz`` nor ``errors``.

    ``truth`` is what motion capture reports, tilted against the IMU as `SensorErrors.tilt` says.
    ``onboard_R_ws`` is the attitude that a filter aboard might have found: that of the IMU, with a
    slowly swaying tilt error and a drifting heading. No filter is run for it.
    """
    return [fly_one(config, index, seed=seed) for index in range(count)]


def fly_one(config: QuadrotorConfig, index: int, *, seed: int) -> Recording:
    """The flight of one number, as `fly` makes it."""
    shape = config.shapes[index % len(config.shapes)]
    speed = config.speeds[index // len(config.shapes) % len(config.speeds)]
    seeds = np.random.SeedSequence((seed, index)).spawn(5)
    motion_rng, sensor_rng, link_rng, truth_rng, onboard_rng = map(np.random.default_rng, seeds)
    plan, errors = plan_flight(config, shape, speed, motion_rng), config.errors
    rows = round(config.duration_s * config.rate_hz)
    t = torch.arange(rows, dtype=torch.float64) / config.rate_hz
    link = draw_link(errors, rows, config.rate_hz, link_rng)
    motion = plan.at(torch.cat((t, link.t - link.lag)))
    seen, felt = motion[:rows], motion[rows:]
    samples = errors.disturbed(exact_samples(felt), felt.load, config.rate_hz, sensor_rng)
    acc_s, gyr_s = link.received(samples, t).float().split(3, dim=-1)
    # The filter aboard is as late as the IMU; over milliseconds the body turns at a steady rate.
    late_R_wb = so3.retract(seen.R_wb, -link.lag * seen.omega_b)
    return Recording(
        f"{shape.value}_{speed.value}_{index:04d}",
        ImuSequence(t, acc_s, gyr_s),
        Trajectory(
            t, errors.tilted(seen.R_wb, truth_rng).float(), seen.p_w.float(), seen.v_w.float()
        ),
        onboard_R_ws=errors.estimated(t, late_R_wb, onboard_rng).float(),
    )


def exact_samples(motion: Motion) -> Float64[Tensor, "time 6"]:
    """What a perfect sensor at the body's origin reads: specific force, then angular rate."""
    none = torch.zeros(1, 3, dtype=torch.float64)
    aligned = torch.eye(3, dtype=torch.float64)
    samples = inertial_measurements(motion.acc_w, motion.omega_b, motion.R_wb, aligned, none, none)
    return torch.cat(samples, dim=-1)


def plan_flight(
    config: QuadrotorConfig, shape: Shape, speed: Speed, rng: np.random.Generator
) -> Plan:
    """A random flight: where, how large, how fast, which way its figure and its nose point."""
    height = rng.uniform(*MIDDLE_M)
    figure_w = _draw_figure(shape, height, rng)
    phase = rng.uniform(0, 2 * math.pi)
    surveyed = figure_w.at(torch.linspace(0, SURVEYED, 1024, dtype=torch.float64))
    pace = float(so3.length(surveyed[1]).mean())
    rate = _rate(surveyed, rng.uniform(*SPEEDS_MPS[speed]) / pace)
    nose = rng.choice(["constant", "turning", "facing"])
    turn = rng.uniform(-TURN_RATE, TURN_RATE) / rate
    drag = torch.tensor(config.drag, dtype=torch.float64)
    return Plan(
        time=_draw_timeline(config.duration_s, height, rate * pace, rng),
        figure_w=figure_w,
        phase=phase,
        rate=rate * float(rng.choice([-1.0, 1.0])),
        start_w=torch.from_numpy(np.append(START_M * rng.uniform(-1, 1, 2), GROUND_M)),
        height=height,
        wobble=_draw_wobble(config.wobble, rng),
        yaw=rng.uniform(-math.pi, math.pi),
        turn=0.0 if nose == "constant" else turn,
        is_facing=nose == "facing" and _can_face(surveyed, rate),
        drag=drag * rng.uniform(1 - DRAG_SPREAD, 1 + DRAG_SPREAD),
    )


def _draw_figure(shape: Shape, height: float, rng: np.random.Generator) -> Waves:
    """A figure of random size about the vertical through its middle, in metres."""
    if shape is Shape.WAYPOINTS:
        frequency = torch.from_numpy(rng.uniform(*WAYPOINT_FREQUENCY, WAYPOINT_TERMS))
        unsized = Waves.noise(frequency, 3, rng)
        # The largest value a sum can take, so that the figure stays within its size.
        reach = (unsized.sine**2 + unsized.cosine**2).sqrt().sum(0, keepdim=True)
        unsized = unsized.scaled(1 / reach)
    else:
        unsized = Waves.of(FIGURES[shape])
    wide = rng.uniform(*SIZE_M)
    room = min(height - HEIGHT_M[0], HEIGHT_M[1] - height)
    tall = room * rng.uniform(0.3, 1.0)
    size = torch.tensor([[wide, wide, tall]], dtype=torch.float64)
    heading = torch.tensor(rng.uniform(-math.pi, math.pi), dtype=torch.float64)
    return unsized.scaled(size).mapped(so3.about_z(heading))


def _rate(surveyed: Jet, wanted: float) -> float:
    """Radians a second: the wanted ones, or fewer where the curves take too much."""
    sideways = float(so3.length(surveyed[2, :, :2]).max()) / SIDEWAYS_LIMIT_MPS2
    vertical = float(surveyed[2, :, 2].abs().max()) / VERTICAL_LIMIT_MPS2
    jerk = float(so3.length(surveyed[3]).max()) / JERK_LIMIT_MPS3
    return min(wanted, max(sideways, vertical) ** -0.5, jerk ** (-1 / 3))


def _can_face(surveyed: Jet, rate: float) -> bool:
    """Whether the horizontal tangent is long enough and turns slowly enough to follow."""
    tangent = so3.length(surveyed[1, :, :2])
    fastest = float(bend(surveyed).abs().max()) * rate
    return float(tangent.min() / tangent.mean()) > SLOWEST_TANGENT and fastest < YAW_RATE_LIMIT


def _draw_timeline(
    duration: float, height: float, speed: float, rng: np.random.Generator
) -> Timeline:
    """Two to three seconds of rest before and after, and most flights land."""
    lift, rest = rng.uniform(*REST_S, 2)
    climb, descent = STEP_STEEPEST * height / rng.uniform(*CLIMB_MPS, 2)
    climb, descent = np.clip((climb, descent), *CLIMB_S)
    begin = lift + climb + rng.uniform(*HOVER_S)
    blend = float(np.clip(STEP_STEEPEST * speed / STARTING_MPS2, *STARTING_S))
    sink, hover = duration - rest - descent, rng.uniform(0, 0.5)
    end = max(sink - hover - blend, begin)
    if rng.uniform() > LANDING:
        end = sink = math.inf
    return Timeline(lift, float(climb), begin, end, blend, sink, float(descent))


def _draw_wobble(size: float, rng: np.random.Generator) -> Waves:
    """Small movements in x, y, z and yaw that tilt, turn and lift with the spectra above.

    To tilt at a rate ω at a frequency ν, a hovering body moves sideways by ``ω g / ν³``.
    """
    hz = torch.from_numpy(rng.uniform(*WOBBLE_HZ, WOBBLE_TERMS))
    frequency = 2 * math.pi * hz
    rate = WOBBLE_RATE * (WOBBLE_FALLS_OFF_HZ / hz).clamp(max=1).square()
    sideways = rate * GRAVITY_MPS2 / frequency**3
    vertical = WOBBLE_CLIMB_MPS2 / hz / frequency**2
    yaw = WOBBLE_YAW_RATE / hz / frequency
    densities = torch.stack((sideways, sideways, vertical, yaw), dim=-1)
    strength = size * rng.uniform(0.5, 1.5) * math.sqrt(WOBBLE_HZ[1] - WOBBLE_HZ[0])
    return Waves.noise(frequency, 4, rng).scaled(strength * densities)
