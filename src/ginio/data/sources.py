"""From the name of a dataset to corpora for training, choosing and judging."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ginio.core.recording import Recording
from ginio.data import cache, synthetic
from ginio.data.corpus import Corpus, decimate
from ginio.data.correction import Truth, corrected
from ginio.data.readers import nanobench
from ginio.data.split import SIDES, Side, Split
from ginio.data.table import DataError

DatasetName = Literal["nanobench", "synthetic-quadrotor"]
RECORDED_HZ = 100.0
"""Samples per second of every dataset here."""
LICENCES: Mapping[DatasetName, str] = {
    "nanobench": "BSD-3-Clause, Ullah and Baca, NanoBench, 2026",
    "synthetic-quadrotor": "Apache-2.0, generated",
}
NANOBENCH_VARIABLE = "GINIO_NANOBENCH"
# Missing flights that an error names.
NAMED = 5
SYNTHETIC_FLIGHTS: Mapping[Side, int] = {"train": 400, "val": 24, "test": 24}
SYNTHETIC_SEEDS: Mapping[Side, int] = {"train": 1, "val": 2, "test": 3}


@dataclass(frozen=True, slots=True)
class Source:
    """Corpora by side, at one rate, and the hash of what is on which side."""

    corpora: Mapping[Side, Corpus]
    rate_hz: float
    split: str
    split_sha256: str


def open_source(
    dataset: DatasetName,
    *,
    split: str,
    decimate_by: int,
    root: Path | None = None,
    truth: Truth = "published",
) -> Source:
    """Corpora of a dataset.

    Args:
        dataset: which one.
        split: name of a split that ships with the package; the synthetic quadrotor has its own.
        decimate_by: recorded samples averaged into one.
        root: where the dataset lies; without it, the environment variable GINIO_NANOBENCH.
        truth: as published, or put onto the IMU's frame and clock by `correction`.
    """
    if dataset == "synthetic-quadrotor":
        return _synthetic(decimate_by, truth)
    return _nanobench(root or _root_from_environment(), split, decimate_by, truth)


def _nanobench(root: Path, split_name: str, factor: int, truth: Truth) -> Source:
    split = Split.load("nanobench", split_name)
    found = dict(
        cache.cached(
            root,
            lambda: [(f.sha256, r) for f, r in nanobench.scan(root) if r is not None],
        )
    )
    corpora: dict[Side, Corpus] = {}
    for side in SIDES:
        missing = [name for name, content in split[side].items() if content not in found]
        if missing:
            raise DataError(
                root,
                f"of the {split_name} split's {side} side {_listed(missing)} not here; expected "
                f"all {len(split[side])} flights, with the published content",
            )
        recordings = [found[content] for content in split[side].values()]
        corpora[side] = _joined(recordings, factor, truth)
    return Source(corpora, RECORDED_HZ / factor, split_name, split.sha256)


def _synthetic(factor: int, truth: Truth) -> Source:
    config = synthetic.QuadrotorConfig()
    corpora: dict[Side, Corpus] = {
        side: _joined(
            synthetic.fly(config, SYNTHETIC_FLIGHTS[side], seed=SYNTHETIC_SEEDS[side]),
            factor,
            truth,
        )
        for side in SIDES
    }
    seeds = "-".join(f"{SYNTHETIC_SEEDS[s]}x{SYNTHETIC_FLIGHTS[s]}" for s in SIDES)
    return Source(corpora, config.rate_hz / factor, "generated", f"seeds-{seeds}")


def _joined(recordings: Sequence[Recording], factor: int, truth: Truth) -> Corpus:
    chosen = corrected(recordings) if truth == "corrected" else recordings
    return Corpus.join(decimate(chosen, factor))


def _listed(names: Sequence[str]) -> str:
    shown, more = names[:NAMED], len(names) - NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"{', '.join(shown)}{rest} {'is' if len(names) == 1 else 'are'}"


def _root_from_environment() -> Path:
    root = os.environ.get(NANOBENCH_VARIABLE)
    if not root:
        raise ValueError(
            f"where is NanoBench? Give --data PATH or set {NANOBENCH_VARIABLE} to a clone of the "
            "public repository"
        )
    return Path(root)
