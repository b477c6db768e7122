"""What a sensor recorded, and where it really was."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.integrals import running_products


@dataclass(frozen=True, slots=True)
class ImuSequence:
    """Specific force (m/s²) and angular rate (rad/s) in the sensor frame (Eq. 10).

    ``t`` is in seconds from the start of the recording and strictly rising. At rest ``acc_s``
    points up with 9.81.
    """

    t: Float64[Tensor, " time"]
    acc_s: Float[Tensor, "time 3"]
    gyr_s: Float[Tensor, "time 3"]

    def __post_init__(self) -> None:
        check_time(self.t)
        check_length("acc_s", self.acc_s, (3,), self.t)
        check_length("gyr_s", self.gyr_s, (3,), self.t)

    def __len__(self) -> int:
        return len(self.t)

    def rotated(self, R_ms: Float[Tensor, "3 3"]) -> "ImuSequence":
        """The same motion felt by a sensor mounted in frame m: ``ρ(R_ms)`` on every sample."""
        return ImuSequence(self.t, self.acc_s @ R_ms.mT, self.gyr_s @ R_ms.mT)

    def corrected(
        self, bias_acc_s: Float[Tensor, " 3"], bias_gyr_s: Float[Tensor, " 3"]
    ) -> "ImuSequence":
        """Bias-corrected samples ``z̄``, on which the symmetry is exact (Eq. 11)."""
        return ImuSequence(self.t, self.acc_s - bias_acc_s, self.gyr_s - bias_gyr_s)

    def counted_attitudes(self) -> Float[Tensor, "time 3 3"]:
        """Attitudes counted from the first sample by the gyroscope alone, which drift."""
        rate_s = 0.5 * (self.gyr_s[1:] + self.gyr_s[:-1]).double()
        turns = so3.exp(rate_s * self.t.diff().unsqueeze(-1))
        first = so3.identity_like(self.gyr_s[:1].double())
        return running_products(torch.cat((first, turns))).to(self.gyr_s.dtype)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Attitude, position and velocity over time; world z up."""

    t: Float64[Tensor, " time"]
    R_ws: Float[Tensor, "time 3 3"]
    p_w: Float[Tensor, "time 3"]
    v_w: Float[Tensor, "time 3"]

    def __post_init__(self) -> None:
        check_time(self.t)
        check_length("R_ws", self.R_ws, (3, 3), self.t)
        check_length("p_w", self.p_w, (3,), self.t)
        check_length("v_w", self.v_w, (3,), self.t)

    def __len__(self) -> int:
        return len(self.t)

    def remounted(self, R_ms: Float[Tensor, "3 3"]) -> "Trajectory":
        """The same path with the attitude of a sensor mounted in frame m: ``R_wm = R_ws R_sm``."""
        return Trajectory(self.t, self.R_ws @ R_ms.mT, self.p_w, self.v_w)


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording of a dataset: the IMU and, on its own clock, the truth.

    ``onboard_R_ws`` is the attitude the device itself estimated, at the IMU's stamps, if it did.
    ``counted_R_0s`` are the IMU's `counted_attitudes` from before samples were left out.
    """

    name: str
    imu: ImuSequence
    truth: Trajectory
    onboard_R_ws: Float[Tensor, "imu_time 3 3"] | None = None
    counted_R_0s: Float[Tensor, "imu_time 3 3"] | None = None

    def counted_attitudes(self) -> Float[Tensor, "imu_time 3 3"]:
        """Attitudes counted from the first sample by the gyroscope, at the best rate there was."""
        return self.imu.counted_attitudes() if self.counted_R_0s is None else self.counted_R_0s

    def remounted(self, R_ms: Float[Tensor, "3 3"]) -> "Recording":
        """What the same motion would have recorded with the sensor turned by ``R_ms``."""
        onboard = None if self.onboard_R_ws is None else self.onboard_R_ws @ R_ms.mT
        counted = None if self.counted_R_0s is None else R_ms @ self.counted_R_0s @ R_ms.mT
        imu, truth = self.imu.rotated(R_ms), self.truth.remounted(R_ms)
        return Recording(self.name, imu, truth, onboard, counted)


def check_time(t: Float64[Tensor, " time"]) -> None:
    """Refuse stamps that are not float64, one-dimensional, finite and strictly rising."""
    if t.ndim != 1 or t.dtype != torch.float64:
        raise ValueError(f"t must be float64 (time,); found {t.dtype} {tuple(t.shape)}")
    if not bool(torch.isfinite(t).all()):
        raise ValueError("t has a stamp that is not finite")
    backward = (t.diff() <= 0).nonzero()
    if len(backward):
        i = int(backward[0, 0])
        raise ValueError(
            f"t must rise strictly; sample {i + 1} at {float(t[i + 1]):.9f} s follows "
            f"{float(t[i]):.9f} s"
        )


def check_length(name: str, signal: Tensor, tail: tuple[int, ...], t: Tensor) -> None:
    """Refuse a signal whose shape is not one ``tail`` for each stamp."""
    expected = (len(t), *tail)
    if signal.shape != expected:
        raise ValueError(f"{name} must be {expected}; found {tuple(signal.shape)}")
