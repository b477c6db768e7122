"""The paper's network-only protocol: ID/ID, and the two rotation tests, kept apart by name.

- ``ID/ID``: recordings as they are.
- ``ID/SO(3) vectors``: the vectors handed to the network turn while its frame assumption stays;
  answers are turned back. The paper's test.
- ``ID/SO(3) remount``: the sensor turns, and every attitude with it.

All networks see the same rotations. Standing still and strapdown integration are scored like
networks, in every table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from ginio.core.interfaces import Frontend
from ginio.core.measurement import Measurement
from ginio.core.window import Representation
from ginio.data.corpus import Corpus
from ginio.data.windows import AttitudeSource, WindowSet
from ginio.evaluation.odometry import Odometry, Question, integrate, run_odometries, strapdown
from ginio.geometry import so3
from ginio.metrics import trajectory
from ginio.metrics.uncertainty import coverage

RotationTest = Literal["ID/ID", "ID/SO(3) vectors", "ID/SO(3) remount"]
TESTS: tuple[RotationTest, ...] = ("ID/ID", "ID/SO(3) vectors", "ID/SO(3) remount")
RTE_S = 1.0
STANDING_STILL, STRAPDOWN = "standing still", "strapdown"


@dataclass(frozen=True, kw_only=True)
class ProtocolConfig:
    """What is tried on each recording."""

    tests: tuple[RotationTest, ...] = TESTS
    rotations: int = 10
    seed: int = 0
    """Of the rotations; recording i sees the same ones whatever is evaluated."""
    stride: int = 2
    """Samples between the ends of neighbouring windows."""
    attitude: AttitudeSource = AttitudeSource.TRUTH


@dataclass(frozen=True, slots=True)
class Score:
    """One recording under one test, averaged over the test's rotations."""

    recording: str
    test: str
    attitude: str
    metrics: Mapping[str, float]


def evaluate(
    frontend: Frontend,
    representation: Representation,
    windows: WindowSet,
    config: ProtocolConfig,
) -> Iterator[Score]:
    """Score a network on every recording of a corpus, one score at a time.

    The network answers where the windows are; its answers are judged on the CPU.
    """
    corpus = windows.corpus.to("cpu")
    for recording, name in enumerate(corpus.names):
        rows = corpus.rows(recording)
        last = torch.arange(rows.start, rows.stop, config.stride)
        turns: list[tuple[RotationTest, Tensor]] = [
            (test, rotations_of(recording, test, config)) for test in config.tests
        ]
        questions = [Question(windows=windows, last=last)]
        questions += [asked(windows, last, test, R) for test, every in turns for R in every]
        nominal, *answers = run_odometries(frontend, questions, representation)
        of_tests = iter(answers)
        for test, every in turns:
            runs = [
                path_errors(corpus, last, odometry)
                | uncertainty_errors(corpus.v_w[last], odometry.measurement)
                | law_errors(odometry.measurement, nominal.measurement)
                for odometry in islice(of_tests, len(every))
            ]
            yield Score(name, test, config.attitude.value, mean_of(runs))


def rotations_of(
    recording: int, test: RotationTest, config: ProtocolConfig
) -> Float[Tensor, "rotation 3 3"]:
    """The rotations of one recording: one identity for ID/ID, else uniform on SO(3)."""
    if test == "ID/ID":
        return torch.eye(3).unsqueeze(0)
    # On a CPU a generator sees the lowest 32 bits of its seed and no others.
    generator = torch.Generator().manual_seed((config.seed << 16) + recording)
    return so3.random(config.rotations, generator=generator)


def asked(
    windows: WindowSet,
    last: Int64[Tensor, " time"],
    test: RotationTest,
    R_ms: Float[Tensor, "3 3"],
) -> Question:
    """One recording under one rotation of one of the tests."""
    R_ms = R_ms.to(windows.corpus.acc_s)
    if test == "ID/SO(3) remount":
        windows, turn = replace(windows, corpus=windows.corpus.remounted(R_ms)), None
    else:
        turn = None if test == "ID/ID" else R_ms
    return Question(windows=windows, last=last, R_ms=turn)


def path_errors(corpus: Corpus, last: Tensor, odometry: Odometry) -> dict[str, float]:
    """Errors of the path and of the velocity it was integrated from."""
    p_true = corpus.p_w[last].double()
    step = max(1, round(RTE_S / float(odometry.t.diff().median())))
    R_true = corpus.R_ws[last].double()
    return path_metrics(p_true, odometry.p_w, R_true, step) | {
        "velocity_rmse": float(
            trajectory.velocity_rmse(corpus.v_w[last], odometry.measurement.mean)
        )
    }


def path_metrics(
    p_true: Float64[Tensor, "time 3"],
    p_estimate: Float64[Tensor, "time 3"],
    R_true: Float64[Tensor, "time 3 3"],
    step: int,
) -> dict[str, float]:
    """Every trajectory metric; the alignment is part of each name.

    Network-only runs take heading from the attitude they are given, so the relative error sees
    true attitude on both sides.
    """
    return {
        "ate_se3": float(trajectory.ate_se3(p_true, p_estimate)),
        "ate_yaw": float(trajectory.ate_yaw(p_true, p_estimate)),
        "ate_origin": float(trajectory.ate_origin(p_true, p_estimate)),
        "rte_1s": float(trajectory.rte(p_true, p_estimate, R_true, R_true, step=step)),
        "drift_ratio": float(trajectory.drift_ratio(p_true, p_estimate)),
    }


def uncertainty_errors(
    v_true: Float[Tensor, "time 3"], measurement: Measurement
) -> dict[str, float]:
    """Likelihood and its parts, NEES, and coverage of the 95 % ellipsoid."""
    residual = measurement.residual(v_true)
    covariance = measurement.covariance
    mahalanobis = 0.5 * covariance.nees(residual)
    log_det = 0.5 * covariance.log_det()
    return {
        "nll": float((mahalanobis + log_det).mean()),
        "nll_mahalanobis": float(mahalanobis.mean()),
        "nll_log_det": float(log_det.mean()),
        "nees": float(2 * mahalanobis.mean()),
        "cov95": float(coverage(covariance, residual, torch.tensor([0.95]).to(residual))),
    }


def law_errors(found: Measurement, nominal: Measurement) -> dict[str, float]:
    """How far the answers, turned back, are from those without a rotation (Eq. 40)."""
    sigma, sigma_0 = found.covariance.matrix(), nominal.covariance.matrix()
    difference = torch.linalg.matrix_norm(sigma - sigma_0)
    return {
        "mean_law_error": float((found.mean - nominal.mean).norm(dim=-1).mean()),
        "covariance_law_error": float((difference / torch.linalg.matrix_norm(sigma_0)).mean()),
    }


def trivial_baselines(corpus: Corpus, config: ProtocolConfig) -> dict[str, list[Score]]:
    """Standing still, and strapdown integration of the IMU from the true first state."""
    scores: dict[str, list[Score]] = {STANDING_STILL: [], STRAPDOWN: []}
    for recording, name in enumerate(corpus.names):
        for label, metrics in trivial_errors(corpus, recording, config.stride).items():
            for test in config.tests:
                scores[label].append(Score(name, test, config.attitude.value, metrics))
    return scores


def trivial_errors(corpus: Corpus, recording: int, stride: int) -> dict[str, dict[str, float]]:
    """Path and velocity errors of the two baselines on one recording."""
    rows = corpus.rows(recording)
    last = torch.arange(rows.start, rows.stop, stride, device=corpus.t.device)
    p_true, v_true = corpus.p_w[last].double(), corpus.v_w[last].double()
    v_strapdown = strapdown(corpus, recording)
    p_strapdown = p_true[0] + integrate(corpus.t[rows], v_strapdown)
    estimates = {
        STANDING_STILL: (p_true[:1].expand_as(p_true), torch.zeros_like(v_true)),
        STRAPDOWN: (p_strapdown[::stride], v_strapdown[::stride]),
    }
    step = max(1, round(RTE_S / float(corpus.t[last].diff().median())))
    return {
        label: path_metrics(p_true, p, corpus.R_ws[last].double(), step)
        | {"velocity_rmse": float(trajectory.velocity_rmse(v_true, v))}
        for label, (p, v) in estimates.items()
    }


def mean_of(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Metric by metric mean."""
    return {name: sum(run[name] for run in runs) / len(runs) for name in runs[0]}
