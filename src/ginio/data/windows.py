"""Windows of a corpus with what they are to predict, gathered by index on its device."""

from dataclasses import dataclass, replace
from enum import Enum

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from ginio.core.measurement import Quantity
from ginio.core.window import SensorWindow, Window, gather, window_index
from ginio.data.corpus import Corpus
from ginio.geometry import so3


class AttitudeSource(Enum):
    """Where the attitude came from that aligned the windows and integrated the answers."""

    TRUTH = "truth"
    ONBOARD = "onboard"
    GYRO_WITHIN = "gyro within windows"
    """Relative rotations from the gyroscope alone, what a filter has to offer; the truth still
    tells the attitude of each window's last sample, by which answers are turned."""


@dataclass(frozen=True, slots=True)
class WindowSet:
    """Every window of a corpus: one ends at each sample.

    A window that begins before its recording does is filled up with the recording's first sample:
    before the first sample, the sensor is taken to have rested as it then was.
    """

    corpus: Corpus
    length: int
    quantity: Quantity
    attitude: AttitudeSource = AttitudeSource.TRUTH

    def __len__(self) -> int:
        return len(self.corpus)

    @property
    def step_s(self) -> float:
        """Time between samples."""
        return float(self.corpus.t[:2].diff())

    def index(self, last: Int64[Tensor, " batch"]) -> Int64[Tensor, "batch time"]:
        """Samples of the windows that end at ``last``."""
        return torch.maximum(window_index(last, self.length), self.corpus.start[last].unsqueeze(1))

    def windows(self, last: Int64[Tensor, " batch"]) -> SensorWindow:
        """The windows that end at ``last``, as the sensor felt them."""
        c, index = self.corpus, self.index(last)
        if self.attitude is AttitudeSource.GYRO_WITHIN:
            felt = gather(c.acc_s, c.gyr_s, c.turned_R_0s, index)
            R_w0 = c.R_ws[last] @ c.turned_R_0s[last].mT
            return replace(felt, R_ws=R_w0.unsqueeze(1) @ felt.R_ws)
        return gather(c.acc_s, c.gyr_s, self.attitudes_w(), index)

    def attitudes_w(self) -> Float[Tensor, "samples 3 3"]:
        """The attitudes that turn answers into the world."""
        is_onboard = self.attitude is AttitudeSource.ONBOARD
        return self.corpus.onboard_R_ws if is_onboard else self.corpus.R_ws

    def motion_w(self, last: Int64[Tensor, " batch"]) -> Float[Tensor, "batch 3"]:
        """The true motion of those windows, in the world."""
        c = self.corpus
        if self.quantity is Quantity.VELOCITY:
            return c.v_w[last]
        begin = torch.maximum(last - self.length + 1, c.start[last])
        return c.p_w[last] - c.p_w[begin]

    def motions_w(
        self, last: Int64[Tensor, " batch"], labels: tuple[int, ...]
    ) -> Float[Tensor, "batch output 3"]:
        """The true velocities at some samples of those windows, in the world."""
        return self.corpus.v_w[self.index(last)[:, labels]]


def target_f(window: Window, motion_w: Float[Tensor, "batch 3"]) -> Float[Tensor, "batch 3"]:
    """The true motion in the windows' own frame, which is where networks answer."""
    return so3.rotate(window.R_wf.mT, motion_w)


def targets_s(
    window: SensorWindow, motion_w: Float[Tensor, "batch output 3"], labels: tuple[int, ...]
) -> Float[Tensor, "batch output 3"]:
    """True motions at some samples, each in the sensor frame of its own time."""
    return so3.rotate(window.R_ws[:, labels].mT, motion_w)
