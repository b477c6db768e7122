"""Coverage and likelihood of a covariance over a whole corpus: what its figures are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ginio.core.interfaces import Frontend
from ginio.core.window import Representation
from ginio.data.windows import WindowSet
from ginio.evaluation.odometry import Question, join, run_odometries
from ginio.metrics.uncertainty import coverage, nll_parts

LEVELS = (0.01, *(round(0.05 * i, 2) for i in range(1, 20)), 0.97, 0.98, 0.99, 0.995, 0.999)
# Windows kept for a scatter plot, at equal steps through the corpus.
SCATTERED = 400


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coverage at many levels, and the likelihood of some windows in its two parts."""

    levels: tuple[float, ...]
    coverage: tuple[float, ...]
    mahalanobis: tuple[float, ...]
    log_det: tuple[float, ...]
    windows: int
    """How many were judged; the parts of the likelihood are of at most 400 of them."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Calibration":
        """What ``asdict`` and JSON have made of one."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in document.items()
        }
        return cls(**values)


def calibrate(
    frontend: Frontend, representation: Representation, windows: WindowSet, stride: int
) -> Calibration:
    """Judge the covariance of every window of a corpus as it was recorded."""
    corpus = windows.corpus.to("cpu")
    last = [
        torch.arange(rows.start, rows.stop, stride)
        for rows in map(corpus.rows, range(len(corpus.names)))
    ]
    questions = [Question(windows=windows, last=of_one) for of_one in last]
    answers = run_odometries(frontend, questions, representation)
    measurement = join([answer.measurement for answer in answers])
    residual = measurement.residual(corpus.v_w[torch.cat(last)])
    parts = nll_parts(measurement.covariance, residual)
    some = torch.linspace(0, len(residual) - 1, min(SCATTERED, len(residual))).long()
    levels = torch.tensor(LEVELS).to(residual)
    return Calibration(
        levels=LEVELS,
        coverage=tuple(coverage(measurement.covariance, residual, levels).tolist()),
        mahalanobis=tuple(parts.mahalanobis[some].tolist()),
        log_det=tuple(parts.log_det[some].tolist()),
        windows=len(residual),
    )
