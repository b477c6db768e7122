"""Many recordings end to end, as tensors on one device: what windows are gathered from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from ginio.core.recording import ImuSequence, Recording, Trajectory


@dataclass(frozen=True, slots=True)
class Corpus:
    """Recordings whose truth is on the IMU's clock, one after the other.

    ``start`` holds for each sample the index of its recording's first sample.
    """

    names: tuple[str, ...]
    first: Int64[Tensor, " recording"]
    start: Int64[Tensor, " samples"]
    t: Float64[Tensor, " samples"]
    acc_s: Float[Tensor, "samples 3"]
    gyr_s: Float[Tensor, "samples 3"]
    R_ws: Float[Tensor, "samples 3 3"]
    p_w: Float[Tensor, "samples 3"]
    v_w: Float[Tensor, "samples 3"]
    onboard_R_ws: Float[Tensor, "samples 3 3"]
    turned_R_0s: Float[Tensor, "samples 3 3"]
    """Attitudes that the gyroscope alone counted, each recording from its own first sample."""

    def __len__(self) -> int:
        return len(self.t)

    @classmethod
    def join(cls, recordings: Sequence[Recording]) -> "Corpus":
        """Lay recordings end to end; where no onboard attitude exists, NaN stands for it."""
        if not recordings:
            raise ValueError("a corpus needs at least one recording; found none")
        for r in recordings:
            if not torch.equal(r.imu.t, r.truth.t):
                raise ValueError(f"{r.name}: truth must be on the IMU's clock")
        device = recordings[0].imu.t.device
        lengths = torch.tensor([len(r.imu) for r in recordings], device=device)
        first = lengths.cumsum(0) - lengths
        return cls(
            names=tuple(r.name for r in recordings),
            first=first,
            start=first.repeat_interleave(lengths),
            t=torch.cat([r.imu.t for r in recordings]),
            acc_s=torch.cat([r.imu.acc_s for r in recordings]),
            gyr_s=torch.cat([r.imu.gyr_s for r in recordings]),
            R_ws=torch.cat([r.truth.R_ws for r in recordings]),
            p_w=torch.cat([r.truth.p_w for r in recordings]),
            v_w=torch.cat([r.truth.v_w for r in recordings]),
            onboard_R_ws=torch.cat([_onboard(r) for r in recordings]),
            turned_R_0s=torch.cat([r.counted_attitudes() for r in recordings]),
        )

    def to(self, device: torch.device | str) -> "Corpus":
        """The same recordings on another device."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "names"}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items()})

    def rows(self, recording: int) -> slice:
        """The samples of one recording."""
        ends = [*self.first[1:].tolist(), len(self)]
        return slice(int(self.first[recording]), ends[recording])

    def part(self, recording: int) -> "Corpus":
        """One recording as a corpus of its own."""
        return Corpus.join([self.recording(recording)])

    def recording(self, recording: int) -> Recording:
        """One recording, as it was before it was joined to others."""
        rows = self.rows(recording)
        t, onboard = self.t[rows], self.onboard_R_ws[rows]
        return Recording(
            self.names[recording],
            ImuSequence(t, self.acc_s[rows], self.gyr_s[rows]),
            Trajectory(t, self.R_ws[rows], self.p_w[rows], self.v_w[rows]),
            onboard if bool(torch.isfinite(onboard).all()) else None,
            self.turned_R_0s[rows],
        )

    def remounted(self, R_ms: Float[Tensor, "3 3"]) -> "Corpus":
        """Every recording as a sensor mounted in frame m would have made it."""
        return replace(
            self,
            acc_s=self.acc_s @ R_ms.mT,
            gyr_s=self.gyr_s @ R_ms.mT,
            R_ws=self.R_ws @ R_ms.mT,
            onboard_R_ws=self.onboard_R_ws @ R_ms.mT,
            turned_R_0s=R_ms @ self.turned_R_0s @ R_ms.mT,
        )


def decimate(recordings: Iterable[Recording], factor: int) -> list[Recording]:
    """Every ``factor``-th stamp; inertial samples are averaged over the stamps in between.

    The average is the anti-aliasing filter. Samples it joins are ``factor / rate`` apart, so the
    rotation between them is small enough to average vectors in the sensor frame.
    """
    if factor < 1:
        raise ValueError(f"factor must be 1 or more; found {factor}")
    return [r if factor == 1 else _decimated(r, factor) for r in recordings]


def _decimated(recording: Recording, factor: int) -> Recording:
    imu, truth = recording.imu, recording.truth
    count = len(imu) // factor
    centre = torch.arange(count) * factor + factor // 2

    def mean(signal: Float[Tensor, "time 3"]) -> Float[Tensor, "time_out 3"]:
        return signal[: count * factor].reshape(count, factor, 3).mean(1)

    onboard = recording.onboard_R_ws
    return Recording(
        recording.name,
        replace(imu, t=imu.t[centre], acc_s=mean(imu.acc_s), gyr_s=mean(imu.gyr_s)),
        replace(
            truth,
            t=truth.t[centre],
            R_ws=truth.R_ws[centre],
            p_w=truth.p_w[centre],
            v_w=truth.v_w[centre],
        ),
        None if onboard is None else onboard[centre],
        recording.counted_attitudes()[centre],
    )


def _onboard(recording: Recording) -> Float[Tensor, "time 3 3"]:
    if recording.onboard_R_ws is not None:
        return recording.onboard_R_ws
    return torch.full_like(recording.truth.R_ws, torch.nan)
