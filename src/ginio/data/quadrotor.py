"""How a small quadrotor moves: analytic paths, and the attitude that flying them takes.

A flight is at rest on the ground, climbs, flies a figure and mostly lands again. Its position is a
closed form of time with four continuous derivatives, so attitude, angular rate and specific force
are exact at any instant, and need no simulation step.
"""

import math
from dataclasses import dataclass, fields
from typing import cast

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from ginio.core.sensor import gravity_w
from ginio.geometry import so3
from ginio.geometry.frames import GRAVITY_MPS2

Instants = Float64[Tensor, " time"]
# A function and its first, second and third derivative at some instants, in some axes.
Jet = Float64[Tensor, "4 time axis"]
ScalarJet = Float64[Tensor, "4 time 1"]
Numbers = tuple[float, float, float]
# Frequency, then the factors of its sine and of its cosine on x, y and z.
Term = tuple[float, Numbers, Numbers]

# Seconds that the rotors take to reach their speed before the climb, and to stop after it.
SPIN_UP_S, SPIN_DOWN_S = 0.5, 0.3


def derivative(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """Of a polynomial, coefficients by rising power."""
    return tuple(k * c for k, c in enumerate(coefficients))[1:]


# Step from 0 to 1 over [0, 1] with four continuous derivatives, its derivatives and its integral.
STEP = (0.0, 0.0, 0.0, 0.0, 0.0, 126.0, -420.0, 540.0, -315.0, 70.0)
STEP_JET = (STEP, derivative(STEP), derivative(derivative(STEP)))
STEP_JET = (*STEP_JET, derivative(STEP_JET[2]))
STEP_INTEGRAL = (0.0, *(c / (k + 1) for k, c in enumerate(STEP)))
STEP_STEEPEST = 315 / 128


@dataclass(frozen=True, slots=True)
class Waves:
    """A sum of sinusoids in each of some axes, with exact derivatives."""

    frequency: Float64[Tensor, " term"]
    sine: Float64[Tensor, "term axis"]
    cosine: Float64[Tensor, "term axis"]

    @classmethod
    def of(cls, terms: tuple[Term, ...]) -> "Waves":
        """From a table of terms."""
        frequency, sine, cosine = (
            torch.tensor(column, dtype=torch.float64) for column in zip(*terms, strict=True)
        )
        return cls(frequency, sine, cosine)

    @classmethod
    def noise(
        cls, frequency: Float64[Tensor, " term"], axes: int, rng: np.random.Generator
    ) -> "Waves":
        """Normal factors, of which the mean square of the sum is one in every axis."""
        factors = rng.normal(size=(2, len(frequency), axes)) / math.sqrt(len(frequency))
        sine, cosine = torch.from_numpy(factors)
        return cls(frequency, sine, cosine)

    def mapped(self, matrix: Float64[Tensor, "other axis"]) -> "Waves":
        """A matrix times the value, at every argument."""
        return Waves(self.frequency, self.sine @ matrix.mT, self.cosine @ matrix.mT)

    def scaled(self, factor: Float64[Tensor, "#term #axis"]) -> "Waves":
        """With every term, or axis, larger by a factor."""
        return Waves(self.frequency, self.sine * factor, self.cosine * factor)

    def at(self, x: Instants) -> Jet:
        """Value and three derivatives."""
        angle = x.unsqueeze(-1) * self.frequency
        waves = torch.cat((angle.sin(), angle.cos()), dim=-1)
        rate = self.frequency.unsqueeze(-1)
        a, b = self.sine, self.cosine
        factors: list[Tensor] = []
        for _ in range(4):
            factors.append(torch.cat((a, b)))
            a, b = -rate * b, rate * a
        return waves @ torch.stack(factors)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Instants, and the lengths of the changes that begin there, in seconds.

    Climb from ``lift``, the figure from ``begin`` on until it slows down at ``end``, descent from
    ``sink``. The last two are infinite where the recording ends in the air.
    """

    lift: float
    climb: float
    begin: float
    end: float
    blend: float
    sink: float
    descent: float


@dataclass(frozen=True, slots=True)
class Motion:
    """The body at some instants, exactly. ``b`` has x forward, y left, z up through the rotors."""

    R_wb: Float64[Tensor, "time 3 3"]
    p_w: Float64[Tensor, "time 3"]
    v_w: Float64[Tensor, "time 3"]
    acc_w: Float64[Tensor, "time 3"]
    omega_b: Float64[Tensor, "time 3"]
    load: Float64[Tensor, " time"]
    """Thrust over weight; zero while the rotors stand."""

    def __getitem__(self, part: slice) -> "Motion":
        """The motion at some of the instants."""
        return Motion(*(getattr(self, f.name)[part] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides one flight."""

    time: Timeline
    figure_w: Waves
    """Displacement in metres over the phase of the figure in radians."""
    phase: float
    """Where on the figure the flight begins."""
    rate: float
    """Radians of the figure a second once it is in flow; negative the other way round."""
    start_w: Float64[Tensor, " 3"]
    """Where the vehicle stands before it takes off."""
    height: float
    """Middle of the figure, over the ground."""
    wobble: Waves
    """Small movements in x, y, z and yaw over time, metres and radians."""
    yaw: float
    turn: float
    """Change of yaw for each radian of the figure."""
    is_facing: bool
    """Whether the nose follows the path, instead of ``yaw`` and ``turn``."""
    drag: Float64[Tensor, " 3"]
    """Linear rotor drag over mass along the body's axes, 1/s."""

    def at(self, t: Instants) -> Motion:
        """The motion at any instants, before the take-off and after the landing too."""
        time = self.time
        aloft = step(t, time.lift, time.climb) - step(t, time.sink, time.descent)
        flow = ramp(t, time.begin, time.blend) - ramp(t, time.end, time.blend)
        phase = self.rate * flow
        phase[0] += self.phase
        figure_w = self.figure_w.at(phase[0, :, 0])
        curve_w = compose(figure_w, phase)
        wobble = self.wobble.at(t)
        vertical = torch.tensor([0.0, 0.0, 1.0], dtype=t.dtype)
        risen_w = vertical * curve_w + wobble[..., :3]
        risen_w[0] += self.height * vertical
        curve_w[0] -= self.figure_w.at(torch.tensor([self.phase], dtype=t.dtype))[0]
        path_w = (1 - vertical) * curve_w + multiply(aloft, risen_w)
        yaw = self._heading(figure_w, phase) + multiply(aloft, wobble[..., 3:])[:2, :, 0]
        p_w, v_w, acc_w, jerk_w = path_w
        values, rates = (acc_w, v_w, yaw[0], self.drag), (jerk_w, acc_w, yaw[1], 0 * self.drag)
        R_wb, rate_wb = cast(tuple[Tensor, Tensor], torch.func.jvp(attitude, values, rates))
        omega_b = so3.vee(R_wb.mT @ rate_wb)
        return Motion(
            R_wb, p_w + self.start_w, v_w, acc_w, omega_b, self._load(t, R_wb, acc_w, v_w)
        )

    def _heading(self, figure_w: Jet, phase: ScalarJet) -> Float64[Tensor, "2 time"]:
        """Yaw without wobble, and its rate."""
        if not self.is_facing:
            yaw = self.turn * phase[:2, :, 0]
            yaw[0] += self.yaw - self.turn * self.phase
            return yaw
        tangent = math.copysign(1.0, self.rate) * figure_w[1]
        yaw = torch.atan2(tangent[:, 1], tangent[:, 0])
        return torch.stack((yaw, bend(figure_w) * phase[1, :, 0]))

    def _load(
        self,
        t: Instants,
        R_wb: Float64[Tensor, "time 3 3"],
        acc_w: Float64[Tensor, "time 3"],
        v_w: Float64[Tensor, "time 3"],
    ) -> Instants:
        """Thrust over weight, between the instants when the rotors start and stop."""
        landed = self.time.sink + self.time.descent
        spin = step(t, self.time.lift - SPIN_UP_S, SPIN_UP_S) - step(t, landed, SPIN_DOWN_S)
        thrust = (R_wb[..., 2] * (acc_w - gravity_w(acc_w) + self.drag[2] * v_w)).sum(-1)
        return spin[0, :, 0] * thrust / GRAVITY_MPS2


def attitude(
    acc_w: Float64[Tensor, "time 3"],
    v_w: Float64[Tensor, "time 3"],
    yaw: Instants,
    drag: Float64[Tensor, " 3"],
) -> Float64[Tensor, "time 3 3"]:
    """``R_wb`` that a motion with a yaw takes: thrust along z_b and drag make up the force.

    Differential flatness with linear rotor drag (Faessler, Franchi & Scaramuzza 2018). The specific
    force along x_b and y_b is ``-drag * v_b``; x_b has no part along ``(-sin yaw, cos yaw, 0)``.
    """
    force_w = acc_w - gravity_w(acc_w)
    left_w = torch.stack((-yaw.sin(), yaw.cos(), torch.zeros_like(yaw)), dim=-1)
    x_w = unit(torch.linalg.cross(left_w, force_w + drag[0] * v_w))
    y_w = unit(torch.linalg.cross(force_w + drag[1] * v_w, x_w))
    return torch.stack((x_w, y_w, torch.linalg.cross(x_w, y_w)), dim=-1)


def unit(v: Float64[Tensor, "*batch 3"]) -> Float64[Tensor, "*batch 3"]:
    """Vectors of length one along vectors that are not zero."""
    return v / so3.length(v).unsqueeze(-1)


def bend(curve: Jet) -> Instants:
    """Derivative of the heading of a curve's horizontal tangent by the curve's argument."""
    (dx, dy), (ddx, ddy) = (derivative[:, :2].unbind(-1) for derivative in curve[1:3])
    return (dx * ddy - dy * ddx) / (dx.square() + dy.square())


def multiply(a: ScalarJet, b: Jet) -> Jet:
    """Product of a number and a vector that change with time (Leibniz)."""
    (a0, a1, a2, a3), (b0, b1, b2, b3) = a, b
    return torch.stack(
        (
            a0 * b0,
            a1 * b0 + a0 * b1,
            a2 * b0 + 2 * a1 * b1 + a0 * b2,
            a3 * b0 + 3 * a2 * b1 + 3 * a1 * b2 + a0 * b3,
        )
    )


def compose(outer: Jet, inner: ScalarJet) -> Jet:
    """``outer(inner(t))``, with ``outer`` given at the values of ``inner`` (Faà di Bruno)."""
    f0, f1, f2, f3 = outer
    _, d, dd, ddd = inner
    return torch.stack((f0, f1 * d, f2 * d**2 + f1 * dd, f3 * d**3 + 3 * f2 * d * dd + f1 * ddd))


def step(t: Instants, begin: float, width: float) -> ScalarJet:
    """Rise from 0 to 1 with four continuous derivatives."""
    u = ((t - begin) / width).clamp(0, 1).unsqueeze(-1)
    return torch.stack([so3.horner(u, c) / width**n for n, c in enumerate(STEP_JET)])


def ramp(t: Instants, begin: float, width: float) -> ScalarJet:
    """Integral of `step` over time: five continuous derivatives."""
    u = ((t - begin) / width).unsqueeze(-1)
    value = width * (so3.horner(u.clamp(0, 1), STEP_INTEGRAL) + (u - 1).clamp(min=0))
    return torch.cat((value.unsqueeze(0), step(t, begin, width)[:3]))
