"""Figures of a study as files, one for each network, seed and protocol, and what they say together.

A file says what made it. What has no file is missing, and stays so: nothing is filled in.
"""

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from ginio.evaluation.calibration import Calibration
from ginio.evaluation.protocols import Score
from ginio.evaluation.statistics import Comparison, Interval, bootstrap, compare

Values = Float64[Tensor, " recording"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one protocol found of one network with one seed."""

    run: str
    seed: int
    protocol: str
    made: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Command, data, commit, versions and all else that decides a figure."""
    scores: tuple[Score, ...] = ()
    calibration: Calibration | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A metric of one network under one test: over recordings, and over seeds if there are more."""

    over_recordings: Interval
    """Of each recording's mean over seeds."""
    std: float | None
    """From seed to seed, of the mean over recordings; None of a single seed."""
    seeds: int

    @property
    def mean(self) -> float:
        """Over everything."""
        return self.over_recordings.mean


def write_result(path: Path, result: Result) -> None:
    """Write a result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def read_result(path: Path) -> Result:
    """Read a result back.

    Raises:
        ValueError: the file is damaged, or not a result.
    """
    return _result(path.read_bytes(), str(path))


def _result(text: str | bytes, place: str) -> Result:
    try:
        document = json.loads(text)
        scores = tuple(Score(**score) for score in document.pop("scores"))
        curve = document.pop("calibration")
        calibration = Calibration.read(curve) if curve else None
        return Result(**document, scores=scores, calibration=calibration)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: expected a result of a study; found {error!r}") from error


def _unpacked(path: Path) -> Iterator[Result]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as packed:
            for number, line in enumerate(packed, start=1):
                yield _result(line, f"{path}, line {number}")
    except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected packed results of a study; found {error!r}") from error


@dataclass(frozen=True)
class Results:
    """All results of a study."""

    found: tuple[Result, ...]

    @classmethod
    def read(cls, place: Path) -> "Results":
        """Every result in a study's folder, or in the one file that `pack` wrote.

        Raises:
            ValueError: there is none, or one of them is damaged.
        """
        if place.is_file():
            return cls(tuple(_unpacked(place)))
        paths = sorted((place / "results").glob("*.json"))
        if not paths:
            raise ValueError(f"{place}: expected results/*.json, as a study leaves; found none")
        return cls(tuple(read_result(path) for path in paths))

    def pack(self, path: Path) -> None:
        """Write all results into one compressed file, a line each."""
        with lzma.open(path, "wt", encoding="utf-8", preset=9) as packed:
            for result in self.found:
                packed.write(json.dumps(asdict(result), separators=(",", ":")) + "\n")

    def of(self, run: str, protocol: str) -> list[Result]:
        """Results of one network by one protocol, seed by seed."""
        found = [r for r in self.found if (r.run, r.protocol) == (run, protocol)]
        return sorted(found, key=lambda result: result.seed)

    def made(self, run: str, protocol: str = "rotations") -> Mapping[str, Any] | None:
        """What made a network's figures, or None if there are none."""
        found = self.of(run, protocol)
        return found[0].made if found else None

    def values(self, run: str, protocol: str, test: str, metric: str) -> Values | None:
        """One metric recording by recording, averaged over seeds; None if it was not found."""
        by_seed = self.by_seed(run, protocol, test, metric)
        return torch.stack(by_seed).mean(0) if by_seed else None

    def by_seed(self, run: str, protocol: str, test: str, metric: str) -> list[Values]:
        """One metric recording by recording, for each seed."""
        found: list[Values] = []
        for result in self.of(run, protocol):
            rows = [s.metrics for s in result.scores if s.test == test and metric in s.metrics]
            if rows:
                values = [metrics[metric] for metrics in rows]
                found.append(torch.tensor(values, dtype=torch.float64))
        return found

    def summary(self, run: str, protocol: str, test: str, metric: str) -> Summary | None:
        """One metric in few numbers; None if it was not found."""
        by_seed = self.by_seed(run, protocol, test, metric)
        if not by_seed:
            return None
        means = torch.stack([values.mean() for values in by_seed])
        std = float(means.std()) if len(means) > 1 else None
        return Summary(bootstrap(torch.stack(by_seed).mean(0)), std, len(by_seed))

    def comparison(
        self, run: str, other: str, protocol: str, test: str, metric: str
    ) -> Comparison | None:
        """One network less another, paired by recording; None if one of them is missing."""
        one, two = (self.values(name, protocol, test, metric) for name in (run, other))
        if one is None or two is None or len(one) != len(two):
            return None
        return compare(one, two)

    def calibrations(self, run: str) -> Sequence[Calibration]:
        """Coverage and likelihood of one network, seed by seed."""
        return [r.calibration for r in self.of(run, "calibration") if r.calibration is not None]

    @property
    def is_smoke(self) -> bool:
        """Whether any figure comes from a run that was only to show that everything works."""
        return any(result.made.get("is_smoke", False) for result in self.found)
