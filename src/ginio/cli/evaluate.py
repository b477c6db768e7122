"""`ginio evaluate`: score trained networks by the paper's network-only protocol."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from jaxtyping import Float64
from rich.markup import escape
from rich.table import Table

from ginio.cli.console import CONSOLE
from ginio.cli.device import DEFAULT_DEVICE, check_device
from ginio.data.correction import Truth
from ginio.data.sources import RECORDED_HZ, DatasetName, Source, open_source
from ginio.data.split import Side
from ginio.data.windows import WindowSet
from ginio.evaluation.protocols import ProtocolConfig, Score, evaluate, trivial_baselines
from ginio.evaluation.statistics import bootstrap, compare
from ginio.runtime.checkpoint import Run
from ginio.runtime.zoo import load, shipped
from ginio.training.provenance import commit, versions

PRINTED = ("ate_se3", "velocity_rmse", "nees", "cov95")


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Score trained networks on one side of a split, beside standing still and strapdown."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Names of trained networks, or run directories."""
    dataset: DatasetName = "nanobench"
    data: Path | None = None
    """Where the dataset lies, if it is not generated."""
    split: str = "standard"
    side: Side = "test"
    truth: Truth = "published"
    """Motion capture as published, or put onto the IMU's frame and clock by each flight itself."""
    protocol: Annotated[
        ProtocolConfig, tyro.conf.OmitArgPrefixes, tyro.conf.EnumChoicesFromValues
    ] = field(default_factory=ProtocolConfig)
    device: str = DEFAULT_DEVICE
    json: Path | None = None
    """Write every score of every recording to this file."""

    def __call__(self) -> int:
        """Score, print the table, and write the results."""
        if not self.runs:
            known = ", ".join(shipped())
            raise ValueError(f"no network to score; expected a run directory or one of {known}")
        check_device(self.device)
        # TF32 keeps ten bits, and its rounding obeys no law of rotations.
        torch.backends.cudnn.allow_tf32 = False
        loaded = {name: load(name) for name in self.runs}
        factors = {decimation(run) for run in loaded.values()}
        sources = {factor: self.source(factor) for factor in factors}
        scores: dict[str, list[Score]] = {}
        for name, run in loaded.items():
            corpus = sources[decimation(run)].corpora[self.side]
            if not scores:
                scores |= trivial_baselines(corpus, self.protocol)
            run.network.to(self.device)
            windows = WindowSet(
                corpus.to(self.device),
                run.card.network.window,
                run.card.quantity,
                self.protocol.attitude,
            )
            total = len(corpus.names) * len(self.protocol.tests)
            scores[name] = []
            with CONSOLE.status("") as status:
                for score in evaluate(
                    run.frontend(), run.card.representation, windows, self.protocol
                ):
                    scores[name].append(score)
                    status.update(
                        f"{escape(name)}: {len(scores[name])} of {total}, {score.recording}"
                    )
        source = next(iter(sources.values()))
        CONSOLE.print(score_table(scores, self.title(source)))
        if self.json is not None:
            self.json.parent.mkdir(parents=True, exist_ok=True)
            document = self.document(scores, source)
            self.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return 0

    def title(self, source: Source) -> str:
        """What was scored, against which truth if not the published one."""
        truth = "" if self.truth == "published" else f", {self.truth} truth"
        return f"{self.dataset}, {source.split} split, {self.side}{truth}"

    def source(self, decimate_by: int) -> Source:
        """The data at one rate."""
        return open_source(
            self.dataset,
            split=self.split,
            decimate_by=decimate_by,
            root=self.data,
            truth=self.truth,
        )

    def document(self, scores: Mapping[str, Sequence[Score]], source: Source) -> dict[str, Any]:
        """Every figure with what made it."""
        protocol = asdict(self.protocol) | {"attitude": self.protocol.attitude.value}
        return {
            "command": f"ginio evaluate {' '.join(self.runs)} --dataset {self.dataset} "
            f"--split {self.split} --side {self.side} --truth {self.truth}",
            "truth": self.truth,
            "split_sha256": source.split_sha256,
            "commit": commit(),
            "versions": versions(),
            "protocol": protocol,
            "summary": summary(scores),
            "comparison": comparison(scores),
            "scores": {name: [asdict(s) for s in rows] for name, rows in scores.items()},
        }


def decimation(run: Run) -> int:
    """Recorded samples that make one at the rate a network was trained on."""
    factor = round(RECORDED_HZ / run.card.rate_hz)
    if factor < 1 or not math.isclose(factor * run.card.rate_hz, RECORDED_HZ):
        raise ValueError(
            f"a network for {run.card.rate_hz:g} Hz cannot be scored on recordings of "
            f"{RECORDED_HZ:g} Hz; expected that rate, or a whole part of it"
        )
    return factor


def values(scores: Sequence[Score], test: str, metric: str) -> Float64[torch.Tensor, " recording"]:
    """One metric under one test, recording by recording."""
    found = [s.metrics[metric] for s in scores if s.test == test]
    return torch.tensor(found, dtype=torch.float64)


def summary(scores: Mapping[str, Sequence[Score]]) -> dict[str, Any]:
    """Mean, interval and median of every metric, by network and test."""
    return {
        name: {
            test: {
                metric: asdict(bootstrap(values(rows, test, metric)))
                for metric in next(s.metrics for s in rows if s.test == test)
            }
            for test in dict.fromkeys(s.test for s in rows)
        }
        for name, rows in scores.items()
    }


def comparison(scores: Mapping[str, Sequence[Score]]) -> dict[str, Any]:
    """Each network's ATE minus the first network's, paired by recording."""
    networks = [name for name, rows in scores.items() if "nees" in rows[0].metrics]
    first = networks[0]
    return {
        f"{name} - {first}": {
            test: asdict(
                compare(
                    values(scores[name], test, "ate_se3"), values(scores[first], test, "ate_se3")
                )
            )
            for test in dict.fromkeys(s.test for s in scores[name])
        }
        for name in networks[1:]
    }


def score_table(scores: Mapping[str, Sequence[Score]], title: str) -> Table:
    """Mean over recordings, with the bootstrap 95 % interval of the ATE."""
    attitude = next(iter(scores.values()))[0].attitude
    table = Table(title=f"{title}; attitude: {attitude}", caption="Mean over recordings [95 %].")
    table.add_column("network", overflow="fold", min_width=12)
    table.add_column("test")
    for column in ("ATE (SE3) m", "velocity m/s", "NEES (3)", "cov95"):
        table.add_column(column, justify="right")
    for name, rows in scores.items():
        for test in dict.fromkeys(s.test for s in rows):
            ate = bootstrap(values(rows, test, "ate_se3"))
            cells = [f"{ate.mean:.3f} [{ate.low:.3f}, {ate.high:.3f}]"]
            for metric in PRINTED[1:]:
                known = metric in rows[0].metrics
                cells.append(f"{values(rows, test, metric).mean():.3f}" if known else "–")
            table.add_row(escape(name), test, *cells)
        table.add_section()
    return table
