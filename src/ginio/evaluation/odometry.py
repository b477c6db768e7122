"""Network-only odometry: predicted velocities, turned into the world and summed up."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from ginio.core.interfaces import Frontend
from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.core.sensor import gravity_w
from ginio.core.window import Representation, SensorWindow, Window
from ginio.data.corpus import Corpus
from ginio.data.windows import WindowSet
from ginio.geometry import so3

# Windows that are asked about at once: what fits a CPU's cache, what fills a GPU.
CHUNK, CUDA_CHUNK = 512, 8192
Disturb = Callable[[SensorWindow], SensorWindow]


@dataclass(frozen=True, slots=True)
class Odometry:
    """What a network says of one recording, in the world, at the ends of its windows.

    ``measurement`` holds velocities and their covariances; ``p_w`` starts at the true position. All
    of it is on the CPU: paths are many small decompositions, which no accelerator likes.
    """

    t: Float64[Tensor, " time"]
    p_w: Float64[Tensor, "time 3"]
    R_ws: Float[Tensor, "time 3 3"]
    measurement: Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a network is asked of one recording: the windows that end at ``last``.

    ``R_ms`` turns the vectors that are handed to the network (the rotation test ``vectors``), and
    the answers are turned back. ``disturb`` changes windows before they are written in a frame; the
    answers are brought to the world by the attitude that it leaves the last sample.
    """

    windows: WindowSet
    last: Int64[Tensor, " time"]
    R_ms: Float[Tensor, "3 3"] | None = None
    disturb: Disturb | None = None

    def chunks(self, representation: Representation, size: int) -> Iterator[Window]:
        """Its windows as the network sees them, some at a time."""
        for last in self.last.to(self.windows.corpus.t.device).split(size):
            felt = self.windows.windows(last)
            window = (felt if self.disturb is None else self.disturb(felt)).represent(
                representation
            )
            yield window if self.R_ms is None else window.rotated(self.R_ms.unsqueeze(0))

    def odometry(self, measurement: Measurement) -> Odometry:
        """The path of an answer in the world."""
        c, last = self.windows.corpus, self.last.to(self.windows.corpus.t.device)
        t, start_w = c.t[last].cpu(), c.p_w[last[0]].cpu().double()
        p_w = start_w + integrate(t, measurement.mean.double())
        return Odometry(t, p_w, self.windows.attitudes_w()[last].cpu(), measurement)


def run_odometry(
    frontend: Frontend, question: Question, representation: Representation
) -> Odometry:
    """Predict the velocity at each window's end and integrate."""
    return run_odometries(frontend, [question], representation)[0]


def run_odometries(
    frontend: Frontend, questions: Sequence[Question], representation: Representation
) -> list[Odometry]:
    """The same of many questions at once, which is all that a large accelerator notices.

    Raises:
        ValueError: the network does not predict velocities, or an attitude does not exist.
    """
    for question in questions:
        attitude, last = question.windows.attitudes_w(), question.last
        if not bool(torch.isfinite(attitude[last.to(attitude.device)]).all()):
            source = question.windows.attitude.value
            raise ValueError(f"attitude {source!r} does not exist for every sample")
    is_cuda = questions[0].windows.corpus.t.is_cuda
    answers: list[Measurement] = []
    for windows in batches(questions, representation, CUDA_CHUNK if is_cuda else CHUNK):
        together = Window.join(windows)
        answers.append(frontend.measure(together).rotated(together.R_wf))
    measurement = join(answers).to("cpu")
    if measurement.quantity is not Quantity.VELOCITY:
        found = measurement.quantity.value
        raise ValueError(f"odometry sums up velocities; found a network of {found}")
    each = measurement.split([len(question.last) for question in questions])
    return [question.odometry(m) for question, m in zip(questions, each, strict=True)]


def batches(
    questions: Sequence[Question], representation: Representation, size: int
) -> Iterator[list[Window]]:
    """Windows of all questions in turn, about as many together as a batch should have."""
    batch: list[Window] = []
    for question in questions:
        for window in question.chunks(representation, size):
            if batch and sum(len(w.acc_f) for w in batch) + len(window.acc_f) > size:
                yield batch
                batch = []
            batch.append(window)
    yield batch


def integrate(
    t: Float64[Tensor, " time"], v_w: Float64[Tensor, "time 3"]
) -> Float64[Tensor, "time 3"]:
    """Displacement from the first stamp, by the trapezoidal rule."""
    steps = 0.5 * (v_w[1:] + v_w[:-1]) * t.diff().unsqueeze(-1)
    return torch.cat([torch.zeros_like(v_w[:1]), steps.cumsum(0)])


def strapdown(corpus: Corpus, recording: int) -> Float64[Tensor, "time 3"]:
    """Velocity from the IMU alone: gyro and accelerometer integrated from the true first state.

    The trivial baseline of inertial navigation, with no network, no filter and no bias estimate.
    """
    rows = corpus.rows(recording)
    t = corpus.t[rows]
    gyr, acc = corpus.gyr_s[rows].double(), corpus.acc_s[rows].double()
    turns = so3.exp(0.5 * (gyr[1:] + gyr[:-1]) * t.diff().unsqueeze(-1))
    R_ws = [corpus.R_ws[rows.start].double()]
    for turn in turns:
        R_ws.append(R_ws[-1] @ turn)
    acc_w = so3.rotate(torch.stack(R_ws), acc) + gravity_w(acc)
    return corpus.v_w[rows.start].double() + integrate(t, acc_w)


def join(measurements: list[Measurement]) -> Measurement:
    """Measurements of several batches as one."""
    covariances = [m.covariance for m in measurements]
    return Measurement(
        torch.cat([m.mean for m in measurements]),
        Covariance(
            torch.cat([c.axes for c in covariances]), torch.cat([c.log_std for c in covariances])
        ),
        measurements[0].quantity,
    )
