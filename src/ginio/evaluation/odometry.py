"""Network-only odometry: predicted velocities, turned into the world and summed up."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from ginio.core.interfaces import Frontend
from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.core.sensor import gravity_w
from ginio.core.window import Representation, SensorWindow
from ginio.data.corpus import Corpus
from ginio.data.windows import WindowSet
from ginio.geometry import so3

CHUNK = 512
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


def run_odometry(
    frontend: Frontend,
    windows: WindowSet,
    last: Int64[Tensor, " time"],
    representation: Representation,
    R_ms: Float[Tensor, "3 3"] | None = None,
    disturb: Disturb | None = None,
) -> Odometry:
    """Predict the velocity at each window's end and integrate.

    ``R_ms`` turns the vectors that are handed to the network (the rotation test ``vectors``), and
    the answers are turned back. ``disturb`` changes windows before they are written in a frame; the
    answers are brought to the world by the attitude that it leaves the last sample.

    Raises:
        ValueError: the network does not predict velocities, or an attitude does not exist.
    """
    c, last = windows.corpus, last.to(windows.corpus.t.device)
    R_ws = windows.attitudes_w()[last]
    if not bool(torch.isfinite(R_ws).all()):
        raise ValueError(f"attitude {windows.attitude.value!r} does not exist for every sample")
    answers: list[Measurement] = []
    for chunk in last.split(CHUNK):
        felt = windows.windows(chunk)
        window = (felt if disturb is None else disturb(felt)).represent(representation)
        if R_ms is not None:
            window = window.rotated(R_ms.expand(len(chunk), 3, 3))
        answers.append(frontend.measure(window).rotated(window.R_wf))
    measurement = join(answers).to("cpu")
    if measurement.quantity is not Quantity.VELOCITY:
        found = measurement.quantity.value
        raise ValueError(f"odometry sums up velocities; found a network of {found}")
    t, start_w = c.t[last].cpu(), c.p_w[last[0]].cpu().double()
    p_w = start_w + integrate(t, measurement.mean.double())
    return Odometry(t, p_w, R_ws.cpu(), measurement)


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
