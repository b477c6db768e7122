"""Filter-connected runs: recordings through a filter and a network, as they are and remounted.

Nothing here is given the truth: attitude, velocity and biases are the filter's own, from the first
second on. Every remount of a recording runs beside the others in one batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ginio.core.recording import Recording, Trajectory
from ginio.data.corpus import Corpus
from ginio.evaluation.protocols import RTE_S, Score
from ginio.filters.belief import POSITION, VELOCITY, choose
from ginio.filters.cloning import CloningFilter
from ginio.filters.inekf import InekfConfig
from ginio.filters.network_error import NetworkError
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.start import Start, is_resting, start_at_rest, start_at_truth, start_moving
from ginio.filters.strapdown import ImuNoise
from ginio.geometry import frames, so3
from ginio.metrics import trajectory
from ginio.runtime.checkpoint import Run
from ginio.runtime.connected import ConnectedLoop, Correction, Stream

FilterName = Literal["inekf", "scekf"]
StartKind = Literal["own", "truth"]
# Tuned on NanoBench's val side. Far above the sensor's own noise: packets are missing, and straight
# lines in their place miss what the vehicle did.
CRAZYFLIE = ImuNoise(acc=0.3, gyr=0.02, acc_walk=3e-3, gyr_walk=2e-4)
OVERLAPPING = NetworkError(correlation_s=1.0)
FRAMES = {"inekf": Frame.LAST, "scekf": Frame.WORLD}


@dataclass(frozen=True, kw_only=True)
class FusionConfig:
    """How a network and a filter are joined; one set of figures for every network."""

    filter: FilterName = "inekf"
    update_hz: float = 5.0
    start: StartKind = "own"
    """From the first second of samples, or from the truth, which then is said in the results."""
    start_s: float = 1.0
    noise: ImuNoise = CRAZYFLIE
    network: NetworkError = OVERLAPPING

    def build(self) -> CloningFilter:
        """The filter; velocities need no clones."""
        config = InekfConfig if self.filter == "inekf" else ScekfConfig
        return config(noise=self.noise, network=self.network, clones=0).build()


@dataclass(frozen=True, slots=True)
class Fused:
    """What a filter believed after each correction, for every run of a batch."""

    t: Float64[Tensor, " time"]
    R_ws: Float64[Tensor, "run time 3 3"]
    v_w: Float64[Tensor, "run time 3"]
    p_w: Float64[Tensor, "run time 3"]
    bias_acc_s: Float64[Tensor, "run time 3"]
    bias_gyr_s: Float64[Tensor, "run time 3"]
    covariance: Float64[Tensor, "run time 15 15"]
    nis: Float64[Tensor, "run time"]
    accepted: Float64[Tensor, "run time"]
    samples: tuple[int, ...]
    """Rows of the recording at which the filter stood."""


def connected_loop(run: Run, config: FusionConfig, rate_hz: float) -> ConnectedLoop:
    """A trained network and a filter for recordings of a rate."""
    card = run.card
    factor = round(rate_hz / card.rate_hz)
    if factor < 1 or abs(factor * card.rate_hz - rate_hz) > 1e-6 * rate_hz:
        raise ValueError(
            f"a network for {card.rate_hz:g} Hz needs recordings of that rate or a whole multiple; "
            f"found {rate_hz:g} Hz"
        )
    return ConnectedLoop(
        frontend=run.frontend(),
        filter=config.build(),
        representation=card.representation,
        quantity=card.quantity,
        window=card.network.window,
        factor=factor,
        every=max(1, round(card.rate_hz / config.update_hz)),
        frame=FRAMES[config.filter],
    )


def fuse(
    loop: ConnectedLoop,
    corpus: Corpus,
    recording: int,
    R_ms: Float[Tensor, "run 3 3"],
    config: FusionConfig,
) -> Fused:
    """One recording through the loop, remounted by each of some rotations."""
    rows = corpus.rows(recording)
    R_sm = R_ms.double().mT
    stream = Stream(
        corpus.t[rows],
        corpus.acc_s[rows].double() @ R_sm,
        corpus.gyr_s[rows].double() @ R_sm,
    )
    first = _first_sample(stream, loop.factor, config.start_s)
    row = first * loop.factor + loop.factor // 2
    if config.start == "truth":
        here = rows.start + row
        count = len(R_ms)
        start = start_at_truth(
            corpus.R_ws[here].double() @ R_sm,
            corpus.v_w[here].double().expand(count, 3),
            corpus.p_w[here].double().expand(count, 3),
        )
    else:
        start = own_start(stream, row + 1)
    corrections = list(loop.run(stream, start, first))
    if not corrections:
        raise ValueError(
            f"{corpus.names[recording]}: {float(stream.t[-1]):.1f} s are too short to correct "
            f"anything after a start of {config.start_s:g} s"
        )
    return _fused(loop, stream, corrections)


def own_start(stream: Stream, count: int) -> Start:
    """A start from the first samples alone: at rest, or else in motion with an honest tilt."""
    acc_s, gyr_s = stream.acc_s[:, :count], stream.gyr_s[:, :count]
    resting = is_resting(acc_s, gyr_s)
    dt = stream.t[1 : count + 1] - stream.t[:count]
    return choose(resting, start_at_rest(acc_s, gyr_s), start_moving(acc_s, gyr_s, dt))


@dataclass(frozen=True, slots=True)
class WorldErrors:
    """Errors of velocity and position with first points and first headings made one.

    No inertial filter knows either in the truth's world.
    """

    velocity: Float64[Tensor, "run time 3"]
    position: Float64[Tensor, "run time 3"]
    velocity_sigma: Float64[Tensor, "run time 3 3"]
    """What the filter claims of them, as covariances."""
    position_sigma: Float64[Tensor, "run time 3 3"]


def world_errors(truth: Trajectory, fused: Fused, R_ms: Float[Tensor, "run 3 3"]) -> WorldErrors:
    """What a filter was off by, and what it claims to be off by."""
    at = torch.tensor(fused.samples)
    p_true, v_true = truth.p_w[at].double(), truth.v_w[at].double()
    R_true = truth.R_ws[at[0]].double() @ R_ms.double().mT
    R_tw = frames.yaw_rotation(R_true @ fused.R_ws[:, 0].mT).unsqueeze(1)
    moved = so3.rotate(R_tw, fused.p_w - fused.p_w[:, :1])

    def claimed(block: slice) -> Float64[Tensor, "run time 3 3"]:
        return frames.rotate_tensor(R_tw, fused.covariance[..., block, block])

    return WorldErrors(
        velocity=so3.rotate(R_tw, fused.v_w) - v_true,
        position=moved - (p_true - p_true[0]),
        velocity_sigma=claimed(VELOCITY),
        position_sigma=claimed(POSITION),
    )


def fusion_scores(
    recording: Recording, fused: Fused, R_ms: Float[Tensor, "run 3 3"]
) -> list[dict[str, float]]:
    """Errors and consistency of every run of one recording."""
    at = torch.tensor(fused.samples)
    p_true = recording.truth.p_w[at].double()
    length = p_true.diff(dim=0).norm(dim=-1).sum()
    step = max(1, round(RTE_S / float(fused.t.diff().median())))
    errors = world_errors(recording.truth, fused, R_ms)
    R_true = recording.truth.R_ws[at].double() @ R_ms.double().mT.unsqueeze(1)
    return [
        {
            "ate_se3": float(trajectory.ate_se3(p_true, fused.p_w[run])),
            "ate_yaw": float(trajectory.ate_yaw(p_true, fused.p_w[run])),
            "ate_origin": float(errors.position[run].square().sum(-1).mean().sqrt()),
            "rte_1s": float(
                trajectory.rte(p_true, fused.p_w[run], R_true[run], fused.R_ws[run], step=step)
            ),
            "drift_ratio": float(100 * errors.position[run, -1].norm() / length),
            "velocity_rmse": float(errors.velocity[run].square().sum(-1).mean().sqrt()),
            "tilt_deg": float(torch.rad2deg(_tilt(R_true[run], fused.R_ws[run])).mean()),
            "nees": _nees(errors.velocity[run], errors.velocity_sigma[run]),
            "position_nees": _nees(errors.position[run], errors.position_sigma[run]),
            "nis": float(fused.nis[run].nanmean()),
            "accepted": float(fused.accepted[run].mean()),
        }
        for run in range(len(R_ms))
    ]


def evaluate_fusion(
    run: Run,
    corpus: Corpus,
    rate_hz: float,
    config: FusionConfig,
    R_ms: Float[Tensor, "run 3 3"],
) -> Iterator[tuple[Score, Fused]]:
    """Every recording as it is, and the mean over its remounts; rotation 0 must be none.

    The scores of a recording come one after the other with the runs they are of.
    """
    loop = connected_loop(run, config, rate_hz)
    attitude = f"filter, {config.start} start"
    for recording, name in enumerate(corpus.names):
        fused = fuse(loop, corpus, recording, R_ms, config)
        scores = fusion_scores(corpus.recording(recording), fused, R_ms)
        yield Score(name, "ID/ID", attitude, scores[0]), fused
        turned = scores[1:]
        if turned:
            mean = {key: sum(s[key] for s in turned) / len(turned) for key in turned[0]}
            mean["worst_change"] = max(abs(s["ate_se3"] - scores[0]["ate_se3"]) for s in turned)
            yield Score(name, "ID/SO(3) remount", attitude, mean), fused


def _first_sample(stream: Stream, factor: int, start_s: float) -> int:
    """The first sample of network rate whose middle is after the start."""
    row = int(torch.searchsorted(stream.t, stream.t[0] + start_s))
    return -(-(row - factor // 2) // factor)


def _fused(loop: ConnectedLoop, stream: Stream, corrections: list[Correction]) -> Fused:
    beliefs = [c.moment.belief for c in corrections]
    samples = tuple(c.moment.sample * loop.factor + loop.factor // 2 for c in corrections)

    def stacked(values: list[Tensor]) -> Tensor:
        return torch.stack(values, dim=1)

    return Fused(
        t=stream.t[torch.tensor(samples)],
        R_ws=stacked([b.state.R_ws for b in beliefs]),
        v_w=stacked([b.state.v_w for b in beliefs]),
        p_w=stacked([b.state.p_w for b in beliefs]),
        bias_acc_s=stacked([b.state.bias_acc_s for b in beliefs]),
        bias_gyr_s=stacked([b.state.bias_gyr_s for b in beliefs]),
        covariance=stacked([loop.filter.export(b).covariance for b in beliefs]),
        nis=stacked([c.innovation.nis for c in corrections]),
        accepted=stacked([c.innovation.accepted.double() for c in corrections]),
        samples=samples,
    )


def _tilt(
    R_true: Float64[Tensor, "time 3 3"], R_ws: Float64[Tensor, "time 3 3"]
) -> Float64[Tensor, " time"]:
    """Angle between two verticals, seen from the sensor."""
    up_s, up_true_s = R_ws[..., 2, :], R_true[..., 2, :]
    sine = torch.linalg.cross(up_s, up_true_s).norm(dim=-1)
    return torch.atan2(sine, (up_s * up_true_s).sum(-1))


def _nees(error: Float64[Tensor, "time 3"], sigma: Float64[Tensor, "time 3 3"]) -> float:
    # The first position is zero by definition, and its error too.
    solved = torch.linalg.solve(sigma[1:], error[1:].unsqueeze(-1)).squeeze(-1)
    return float((error[1:] * solved).sum(-1).mean())
