"""Errors of the frame in which a window is written, as an attitude estimate makes them.

Two errors of an angle θ, each with two courses through time:

- ``gravity``: the attitude is off by a rotation in the world, ``E R_ws``, about a level axis, so
  that the vertical is off by θ. The same attitude writes the windows and brings the answers back.
  Constant: one axis for a flight. Varying: the axis goes round the vertical twice a minute.
- ``relative``: the rotations from each sample's frame to the last one are off, ``D R_ls``, about an
  axis of the sensor. Answers are brought back by the true attitude of the last sample.
  Constant: one D for every sample of a window but the last, whose rotation is the identity whoever
  estimates it. Varying: the angle grows from nothing at the last sample to θ at the first, as the
  bias of a gyroscope makes it grow.

Axes are random, drawn for each flight, and the same for every network, angle and course.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from ginio.core.interfaces import Frontend
from ginio.core.window import Representation, SensorWindow
from ginio.data.corpus import Corpus
from ginio.data.windows import AttitudeSource, WindowSet
from ginio.evaluation.odometry import Question, run_odometries
from ginio.evaluation.protocols import Score, mean_of, path_errors, uncertainty_errors
from ginio.geometry import so3

ErrorKind = Literal["gravity", "relative"]
Course = Literal["constant", "varying"]
KINDS: tuple[ErrorKind, ...] = ("gravity", "relative")
COURSES: tuple[Course, ...] = ("constant", "varying")
ANGLES_DEG = (3.0, 5.0, 10.0, 15.0, 20.0)
# An attitude filter's error sways with periods of some seconds to half a minute.
PERIOD_S = 30.0


@dataclass(frozen=True, slots=True)
class FrameError:
    """One error, one course, one angle (Eq. 41)."""

    kind: ErrorKind
    course: Course
    angle_deg: float

    @property
    def name(self) -> str:
        """What a score under this error calls its test."""
        return f"{self.kind} {self.course} {self.angle_deg:g}°"


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """Which errors are tried on each recording, and how often."""

    kinds: tuple[ErrorKind, ...] = KINDS
    courses: tuple[Course, ...] = COURSES
    angles_deg: tuple[float, ...] = ANGLES_DEG
    draws: int = 3
    """Random axes for each error of each recording."""
    seed: int = 0
    stride: int = 2
    """Samples between the ends of neighbouring windows."""
    attitude: AttitudeSource = AttitudeSource.TRUTH

    @property
    def errors(self) -> tuple[FrameError, ...]:
        """Every error, angles last."""
        return tuple(
            FrameError(kind, course, angle)
            for kind in self.kinds
            for course in self.courses
            for angle in self.angles_deg
        )


def sweep(
    frontend: Frontend,
    representation: Representation,
    windows: WindowSet,
    config: SweepConfig,
) -> Iterator[Score]:
    """Score a network on every recording under every error, averaged over random axes."""
    for recording, name in enumerate(windows.corpus.names):
        part = windows.corpus.part(recording)
        truth, alone = part.to("cpu"), replace(windows, corpus=part)
        last = torch.arange(0, len(part), config.stride)
        axes = axes_of(recording, config)
        questions = [asked(alone, last, error, axis) for error in config.errors for axis in axes]
        answers = iter(run_odometries(frontend, questions, representation))
        for error in config.errors:
            runs = [
                path_errors(truth, last, odometry)
                | uncertainty_errors(truth.v_w[last], odometry.measurement)
                for odometry in islice(answers, len(axes))
            ]
            yield Score(name, error.name, config.attitude.value, mean_of(runs))


def axes_of(recording: int, config: SweepConfig) -> Float64[Tensor, "draw 3"]:
    """The random directions of one recording, uniform on the sphere."""
    generator = torch.Generator().manual_seed((config.seed << 16) + recording)
    axis = torch.randn(config.draws, 3, generator=generator, dtype=torch.float64)
    return axis / so3.length(axis).unsqueeze(-1)


def asked(
    windows: WindowSet,
    last: Int64[Tensor, " time"],
    error: FrameError,
    axis: Float64[Tensor, " 3"],
) -> Question:
    """Windows of a recording under an error: of its attitudes, or within each window."""
    if error.kind == "gravity":
        wrong = replace(windows, corpus=tilted(windows.corpus, error, axis))
        return Question(windows=wrong, last=last)

    def disturb(window: SensorWindow) -> SensorWindow:
        return misaligned(window, error, axis)

    return Question(windows=windows, last=last, disturb=disturb)


def tilted(corpus: Corpus, error: FrameError, axis: Float64[Tensor, " 3"]) -> Corpus:
    """A recording whose attitudes err by a tilt, ``E R_ws``; its truth must be kept elsewhere.

    The axis gives the direction of the tilt at the start, and by its third component which way
    round a varying one goes.
    """
    heading = torch.atan2(axis[1], axis[0])
    if error.course == "varying":
        turns = (corpus.t.cpu() - corpus.t[0].cpu()) / PERIOD_S
        heading = heading + torch.copysign(2 * math.pi * turns, axis[2])
    else:
        heading = heading.expand(len(corpus))
    level = torch.stack((heading.cos(), heading.sin(), torch.zeros_like(heading)), dim=-1)
    E = so3.exp(math.radians(error.angle_deg) * level).to(corpus.R_ws)
    return replace(corpus, R_ws=E @ corpus.R_ws, onboard_R_ws=E @ corpus.onboard_R_ws)


def misaligned(
    window: SensorWindow, error: FrameError, axis: Float64[Tensor, " 3"]
) -> SensorWindow:
    """Windows whose relative rotations err, ``D R_ls``; the last attitude is kept."""
    times = window.acc_s.shape[1]
    if error.course == "varying":
        part = torch.linspace(1, 0, times, dtype=torch.float64)
    else:
        part = (torch.arange(times) < times - 1).double()
    D = so3.exp(math.radians(error.angle_deg) * part.unsqueeze(-1) * axis).to(window.R_ws)
    R_wl = window.R_ws[:, -1:]
    return replace(window, R_ws=R_wl @ D @ R_wl.mT @ window.R_ws)
