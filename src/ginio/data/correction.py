"""Truth put onto the IMU's frame and clock, as far as a recording itself tells how.

Motion capture sees markers and not the sensor: its body frame is tilted against that of the IMU by
a degree or more, and its clock is another. Both are estimated from one recording, without the
publisher's help. Off unless asked for, because it changes what a network is judged by; results say
which truth they were measured against.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ginio.core.recording import Recording, Trajectory
from ginio.geometry import frames, so3

Truth = Literal["published", "corrected"]

# At rest: slower than this, turning slower than this, for at least so long from the start.
REST_MPS = 0.05
REST_RADPS = 0.1
REST_S = 0.5
# In between the first and the last time it is faster than this, it travels.
TRAVELLING_MPS = 0.15
# Both rates are compared below this frequency, and over lags up to this.
SMOOTHED_TO_HZ = 10.0
LONGEST_LAG_S = 0.1
# A flight that hardly turns has a flat correlation, whose peak is noise.
TRUSTED_CORRELATION = 0.75


@dataclass(frozen=True, slots=True)
class Correction:
    """What separates a recording's truth from its IMU; None where the recording does not tell."""

    R_bs: Float[Tensor, "3 3"] | None
    """Sensor to the body whose attitude was captured: least tilt that levels the IMU at rest."""
    lag_s: float | None
    """How much later than the truth's clock the IMU says the same."""

    @property
    def tilt_deg(self) -> float | None:
        """Angle between the two frames' verticals."""
        if self.R_bs is None:
            return None
        angle = so3.geodesic_angle(torch.eye(3).to(self.R_bs), self.R_bs)
        return float(torch.rad2deg(angle))


def corrected(recordings: Iterable[Recording]) -> list[Recording]:
    """Recordings whose truth is that of the IMU, each by its own estimate."""
    return [apply(recording, estimate(recording)) for recording in recordings]


def estimate(recording: Recording) -> Correction:
    """Tilt from the rest before the motion, time offset from both angular rates."""
    return Correction(_levelling(recording), _lag_s(recording))


def apply(recording: Recording, correction: Correction) -> Recording:
    """The recording with its truth turned into the IMU's frame and moved onto its clock."""
    truth = recording.truth
    if correction.lag_s is not None:
        truth = _delayed(truth, correction.lag_s)
    if correction.R_bs is not None:
        truth = replace(truth, R_ws=truth.R_ws @ correction.R_bs.to(truth.R_ws))
    return replace(recording, truth=truth)


def _levelling(recording: Recording) -> Float[Tensor, "3 3"] | None:
    imu, truth = recording.imu, recording.truth
    moving = (truth.v_w.norm(dim=1) > REST_MPS) | (imu.gyr_s.norm(dim=1) > REST_RADPS)
    rest = slice(0, int(moving.int().argmax()) if bool(moving.any()) else len(imu))
    if rest.stop == 0 or float(imu.t[rest.stop - 1] - imu.t[0]) < REST_S:
        return None
    up_s = imu.acc_s[rest].double().mean(0)
    up_b = truth.R_ws[rest].double()[:, 2].mean(0)
    # Least rotation from one direction to the other: level both, but keep neither's heading.
    return (frames.level(up_b).mT @ frames.level(up_s)).to(imu.acc_s)


def _lag_s(recording: Recording) -> float | None:
    """Lag of best correlation between the gyro and the rate of the true attitude."""
    t = recording.imu.t
    step = float(t.diff().median())
    gyr_s = _smoothed(recording.imu.gyr_s.double()[1:-1], step)
    R_ws = recording.truth.R_ws.double()
    span = (t[2:] - t[:-2]).unsqueeze(1)
    rate_b = _smoothed(so3.log(R_ws[:-2].mT @ R_ws[2:]) / span, step)
    most = round(LONGEST_LAG_S / step)
    moving = (recording.truth.v_w[1:-1].norm(dim=1) > TRAVELLING_MPS).nonzero()
    if len(moving) == 0 or int(moving[-1] - moving[0]) <= 4 * most:
        return None
    # Shocks of take-off and landing would outweigh all the rest.
    moved = slice(int(moving[0]) + most, int(moving[-1]) - most)
    gyr_s, rate_b = gyr_s[moved], rate_b[moved]
    inner = rate_b[most:-most]
    correlation = torch.stack(
        [
            _correlation(gyr_s[most + lag : len(gyr_s) - most + lag], inner)
            for lag in range(-most, most + 1)
        ]
    )
    best = int(correlation.argmax())
    if best in {0, 2 * most} or float(correlation[best]) < TRUSTED_CORRELATION:
        return None
    before, at, after = correlation[best - 1 : best + 2].tolist()
    vertex = 0.5 * (before - after) / (before - 2 * at + after)
    return (best - most + vertex) * step


def _correlation(a: Float64[Tensor, "row 3"], b: Float64[Tensor, "row 3"]) -> Float64[Tensor, ""]:
    a, b = a - a.mean(0), b - b.mean(0)
    return (a * b).sum() / (a.square().sum() * b.square().sum()).sqrt()


def _smoothed(signal: Float64[Tensor, "row 3"], step: float) -> Float64[Tensor, "row 3"]:
    spectrum = torch.fft.rfft(signal, dim=0)
    hz = torch.fft.rfftfreq(len(signal), step, dtype=signal.dtype)
    return torch.fft.irfft(spectrum * (hz < SMOOTHED_TO_HZ).unsqueeze(1), n=len(signal), dim=0)


def _delayed(truth: Trajectory, lag_s: float) -> Trajectory:
    """The truth as a clock ``lag_s`` behind would have stamped it; its ends stand still."""
    t = truth.t
    then = (t - lag_s).clamp(t[0], t[-1])
    after = torch.searchsorted(t, then).clamp(1, len(t) - 1)
    before = after - 1
    part = ((then - t[before]) / (t[after] - t[before])).unsqueeze(1).to(truth.p_w)
    turn = so3.log(truth.R_ws[before].mT @ truth.R_ws[after])
    return Trajectory(
        t,
        so3.retract(truth.R_ws[before], part * turn),
        torch.lerp(truth.p_w[before], truth.p_w[after], part),
        torch.lerp(truth.v_w[before], truth.v_w[after], part),
    )
