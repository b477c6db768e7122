"""A window of inertial samples and the frame it is written in.

One function cuts windows, for training and for live use: `cut`. One place orders the channels:
`Window.features`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from ginio.geometry import frames, so3
from ginio.geometry.so3 import Matrix3

Signal = Float[Tensor, "batch time 3"]
Rotations = Float[Tensor, "batch time 3 3"]
Features = Float[Tensor, "batch channel 3 time"]

IMU_CHANNELS = 2
ACC_CHANNEL, GYR_CHANNEL = range(IMU_CHANNELS)
ATTITUDE_CHANNELS = 3


class Representation(Enum):
    """The frame ``f`` of a window's samples."""

    BODY = "body"
    """Each sample in the sensor frame of its own time: no attitude needed (paper: Direct/Body)."""
    WORLD = "world"
    """Every sample in the world frame: needs absolute attitude."""
    LAST = "last"
    """Every sample in the last sensor frame: needs attitude within the window only (paper: LFA)."""
    GRAVITY = "gravity"
    """World with the heading of the window's first sample removed: needs the vertical."""
    LAST_BODY = "last+body"
    """Samples in the last sensor frame, and beside them each as the sensor felt it.

    The first half sums up as motion does. In the second half what is fixed to the body, such as the
    axis of the rotors, the drag along it and a bias, stands still.
    """
    BODY_ATTITUDE = "body+attitude"
    """Samples as the sensor felt them, and beside them the world's axes as it saw them.

    The attitude of each sample as three vectors, which turn with the sensor.
    """

    @property
    def channels(self) -> int:
        """Vector channels of a window's features."""
        beside = {
            Representation.LAST_BODY: IMU_CHANNELS,
            Representation.BODY_ATTITUDE: ATTITUDE_CHANNELS,
        }
        return IMU_CHANNELS + beside.get(self, 0)


@dataclass(frozen=True, slots=True)
class Window:
    """A batch of windows in one representation.

    ``R_wf`` takes an answer given in the windows' frame back to the world; for ``WORLD`` that is
    the identity, for ``GRAVITY`` a heading, for the others the attitude of the last sample.
    ``more_f`` holds further vector channels that turn with the window.
    """

    acc_f: Signal
    gyr_f: Signal
    R_wf: Matrix3
    representation: Representation
    more_f: Features | None = None

    def __post_init__(self) -> None:
        check_signals(self.acc_f, self.gyr_f)
        if self.R_wf.shape != (len(self.acc_f), 3, 3):
            raise ValueError(
                f"R_wf must be ({len(self.acc_f)}, 3, 3), one a window; "
                f"found {tuple(self.R_wf.shape)}"
            )
        found = IMU_CHANNELS if self.more_f is None else IMU_CHANNELS + self.more_f.shape[1]
        if found != self.representation.channels:
            raise ValueError(
                f"a window in the {self.representation.value!r} representation has "
                f"{self.representation.channels} vector channels; found {found}"
            )

    @classmethod
    def join(cls, windows: Sequence["Window"]) -> "Window":
        """Several batches as one; they are in one representation."""
        first, more = windows[0], [w.more_f for w in windows if w.more_f is not None]
        return cls(
            torch.cat([w.acc_f for w in windows]),
            torch.cat([w.gyr_f for w in windows]),
            torch.cat([w.R_wf for w in windows]),
            first.representation,
            torch.cat(more) if more else None,
        )

    @property
    def length(self) -> int:
        """Samples in each window."""
        return self.acc_f.shape[1]

    def features(self) -> Features:
        """Vector channels for a network: specific force, angular rate, then any more (Eq. 11)."""
        samples = stack_signals(self.acc_f, self.gyr_f)
        return samples if self.more_f is None else torch.cat((samples, self.more_f), dim=1)

    def rotated(self, R_af: Float[Tensor, "#batch 3 3"]) -> "Window":
        """``ρ(R_af)`` on the window: the group action of the interface law.

        The window keeps its representation's name, so this is the paper's rotation of the vectors
        handed to a network. A remounted sensor is `Recording.remounted` followed by `cut`.
        """
        R = R_af.unsqueeze(1)
        return Window(
            so3.rotate(R, self.acc_f),
            so3.rotate(R, self.gyr_f),
            self.R_wf @ R_af.mT,
            self.representation,
            None if self.more_f is None else R @ self.more_f,
        )

    def first_invalid(self) -> tuple[int, int] | None:
        """Window and sample of the first value that is not finite, or None."""
        bad = ~(torch.isfinite(self.acc_f) & torch.isfinite(self.gyr_f)).all(-1)
        found = bad.nonzero()
        return (int(found[0, 0]), int(found[0, 1])) if len(found) else None


@dataclass(frozen=True, slots=True)
class SensorWindow:
    """A batch of windows as the sensor felt them, with the attitude of every sample."""

    acc_s: Signal
    gyr_s: Signal
    R_ws: Rotations

    def __post_init__(self) -> None:
        check_signals(self.acc_s, self.gyr_s)
        if self.R_ws.shape != (*self.acc_s.shape, 3):
            raise ValueError(
                f"R_ws must be {(*self.acc_s.shape, 3)}; found {tuple(self.R_ws.shape)}"
            )
        if self.R_ws.dtype != self.acc_s.dtype:
            raise ValueError(
                f"R_ws must have the dtype of acc, {self.acc_s.dtype}; found {self.R_ws.dtype}"
            )

    def represent(self, representation: Representation) -> Window:
        """The same windows written in one frame, with attitude beside them if asked (Eq. 21)."""
        R_wl = self.R_ws[:, -1]
        match representation:
            case Representation.BODY:
                return Window(self.acc_s, self.gyr_s, R_wl, representation)
            case Representation.BODY_ATTITUDE:
                seen_s = frames.attitude_vectors(self.R_ws).movedim(1, -1)
                return Window(self.acc_s, self.gyr_s, R_wl, representation, seen_s)
            case Representation.LAST | Representation.LAST_BODY:
                R_fs, R_wf = frames.last_frame_rotations(self.R_ws), R_wl
            case Representation.WORLD:
                R_fs, R_wf = self.R_ws, so3.identity_like(self.acc_s[:, 0])
            case Representation.GRAVITY:
                R_wf = frames.yaw_rotation(self.R_ws[:, 0])
                R_fs = R_wf.unsqueeze(1).mT @ self.R_ws
        acc_f = frames.rotate_signal(R_fs, self.acc_s)
        gyr_f = frames.rotate_signal(R_fs, self.gyr_s)
        is_beside = representation is Representation.LAST_BODY
        more_f = stack_signals(self.acc_s, self.gyr_s) if is_beside else None
        return Window(acc_f, gyr_f, R_wf, representation, more_f)


def represent(
    acc_s: Signal, gyr_s: Signal, R_ws: Rotations, representation: Representation
) -> Window:
    """Sensor-frame samples and their attitudes as windows of one representation."""
    return SensorWindow(acc_s, gyr_s, R_ws).represent(representation)


def gather(
    acc_s: Float[Tensor, "samples 3"],
    gyr_s: Float[Tensor, "samples 3"],
    R_ws: Float[Tensor, "samples 3 3"],
    index: Int64[Tensor, "batch time"],
) -> SensorWindow:
    """Windows from sample indices, all at once; indices are trusted."""
    return SensorWindow(acc_s[index], gyr_s[index], R_ws[index])


def cut(
    acc_s: Float[Tensor, "samples 3"],
    gyr_s: Float[Tensor, "samples 3"],
    R_ws: Float[Tensor, "samples 3 3"],
    last: Int64[Tensor, " batch"],
    length: int,
    representation: Representation,
) -> Window:
    """Windows of ``length`` samples that end at the given sample indices."""
    if length < 1 or length > len(acc_s):
        raise ValueError(f"window length must be in 1..{len(acc_s)} samples; found {length}")
    if bool(((last < length - 1) | (last >= len(acc_s))).any()):
        raise ValueError(
            f"windows of {length} samples end at index {length - 1}..{len(acc_s) - 1}; "
            f"found {int(last.min())}..{int(last.max())}"
        )
    index = window_index(last, length)
    return gather(acc_s, gyr_s, R_ws, index).represent(representation)


def window_index(last: Int64[Tensor, " batch"], length: int) -> Int64[Tensor, "batch time"]:
    """Indices of the samples of windows that end at the given ones."""
    return last.unsqueeze(1) + torch.arange(1 - length, 1, device=last.device)


def imu_channels(channels: int) -> int:
    """How many of a number of vector channels are inertial: attitude makes the number odd."""
    return channels - ATTITUDE_CHANNELS * (channels % IMU_CHANNELS)


def stack_signals(acc: Signal, gyr: Signal) -> Features:
    """Two signals as vector channels, specific force first."""
    return torch.stack((acc, gyr), dim=1).mT


def check_signals(acc: Tensor, gyr: Tensor) -> None:
    """Refuse signals that are not two floating tensors of one shape (batch, time, 3)."""
    if acc.ndim != 3 or acc.shape[-1] != 3 or acc.shape[1] == 0:
        raise ValueError(f"acc must be (batch, time, 3); found {tuple(acc.shape)}")
    if gyr.shape != acc.shape:
        raise ValueError(
            f"gyr must have the shape of acc, {tuple(acc.shape)}; found {tuple(gyr.shape)}"
        )
    if not acc.is_floating_point() or gyr.dtype != acc.dtype:
        raise ValueError(
            f"acc and gyr must share one floating dtype; found {acc.dtype} and {gyr.dtype}"
        )
