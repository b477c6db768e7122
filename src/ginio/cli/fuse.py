"""`ginio fuse`: a network and a filter together, with nothing but the inertial samples."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from jaxtyping import Float
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from ginio.cli.console import CONSOLE
from ginio.cli.evaluate import comparison, summary, values
from ginio.data.corpus import Corpus
from ginio.data.sources import DatasetName, Source, open_source
from ginio.data.split import Side
from ginio.evaluation.fusion import Fused, FusionConfig, evaluate_fusion
from ginio.evaluation.fusion_page import FusionStory, render
from ginio.evaluation.protocols import ProtocolConfig, RotationTest, Score, trivial_baselines
from ginio.evaluation.statistics import bootstrap
from ginio.geometry import so3
from ginio.runtime.zoo import load
from ginio.training.provenance import commit, versions

PRINTED = ("velocity_rmse", "tilt_deg", "nis", "nees", "accepted")
REMOUNT: RotationTest = "ID/SO(3) remount"


@dataclass(frozen=True, kw_only=True)
class Fuse:
    """Track recordings with a network and a filter that know nothing but inertial samples.

    Every recording is also tracked with its sensor remounted.
    """

    runs: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Names of trained networks, or run directories; best of those that end in "filter"."""
    dataset: DatasetName = "nanobench"
    data: Path | None = None
    """Where the dataset lies, if it is not generated."""
    split: str = "standard"
    side: Side = "test"
    flights: int | None = None
    """Only the first so many recordings."""
    rotations: int = 4
    """Remounts of each recording; the first two put gravity along x and against it."""
    seed: int = 0
    settings: Annotated[
        FusionConfig, tyro.conf.OmitArgPrefixes, tyro.conf.EnumChoicesFromValues
    ] = field(default_factory=FusionConfig)
    json: Path | None = None
    """Write every score of every recording to this file."""
    page: Path | None = None
    """Write a page about the first recording and the first network."""

    def __call__(self) -> int:
        """Track, print the table, write what was asked for."""
        if not self.runs:
            raise ValueError("no network to track with; expected a name or a run directory")
        loaded = {name: load(name) for name in self.runs}
        with CONSOLE.status("reading data"):
            source = open_source(self.dataset, split=self.split, decimate_by=1, root=self.data)
        corpus = source.corpora[self.side]
        if self.flights is not None:
            corpus = Corpus.join([corpus.recording(i) for i in range(self.flights)])
        R_ms = remounts(self.rotations, seed=self.seed)
        scores: dict[str, list[Score]] = {}
        shown: Fused | None = None
        for name, run in loaded.items():
            scores[name] = []
            with CONSOLE.status("") as status:
                for score, fused in evaluate_fusion(
                    run, corpus, source.rate_hz, self.settings, R_ms
                ):
                    shown = fused if shown is None else shown
                    scores[name].append(score)
                    status.update(f"{escape(name)}: {score.recording}")
        tests: tuple[RotationTest, ...] = ("ID/ID", REMOUNT) if len(R_ms) > 1 else ("ID/ID",)
        alone = trivial_baselines(corpus, ProtocolConfig(tests=tests))
        title = f"{self.dataset}, {source.split} split, {self.side}"
        CONSOLE.print(fusion_table(alone | scores, title, self.settings))
        if self.json is not None:
            document = self.document(alone, scores, source)
            self.json.parent.mkdir(parents=True, exist_ok=True)
            self.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        if self.page is not None and shown is not None:
            story = FusionStory(
                network=self.runs[0],
                filter=self.settings.filter,
                recording=corpus.recording(0),
                fused=shown,
                R_ms=R_ms,
                scores=[s for s in scores[self.runs[0]] if s.recording == corpus.names[0]],
            )
            self.page.parent.mkdir(parents=True, exist_ok=True)
            self.page.write_text(render(story), encoding="utf-8")
            CONSOLE.print(f"See it in a browser: {escape(str(self.page))}", soft_wrap=True)
        return 0

    def document(
        self,
        alone: Mapping[str, Sequence[Score]],
        scores: Mapping[str, Sequence[Score]],
        source: Source,
    ) -> dict[str, Any]:
        """Every figure with what made it."""
        everything = {**alone, **scores}
        return {
            "command": f"ginio fuse {' '.join(self.runs)} --dataset {self.dataset} "
            f"--split {self.split} --side {self.side} --filter {self.settings.filter} "
            f"--rotations {self.rotations} --seed {self.seed}",
            "split_sha256": source.split_sha256,
            "commit": commit(),
            "versions": versions(),
            "settings": asdict(self.settings),
            "summary": summary(everything),
            "comparison": comparison(scores),
            "scores": {name: [asdict(s) for s in rows] for name, rows in everything.items()},
        }


def remounts(count: int, *, seed: int) -> Float[Tensor, "run 3 3"]:
    """No rotation, gravity along the sensor's x and against it, then uniform ones."""
    quarter = torch.tensor([[0.0, math.pi / 2, 0.0], [0.0, -math.pi / 2, 0.0]])
    generator = torch.Generator().manual_seed(seed)
    turned = torch.cat([so3.exp(quarter), so3.random(count, generator=generator)])
    return torch.cat([torch.eye(3).unsqueeze(0), turned[:count]])


def fusion_table(
    scores: Mapping[str, Sequence[Score]], title: str, settings: FusionConfig
) -> Table:
    """Mean over recordings, with the bootstrap 95 % interval of the ATE."""
    table = Table(
        title=f"{title}; {settings.filter}, {settings.start} start",
        caption="Mean over recordings [95 %]. worst: largest change of a path error by a remount.",
    )
    table.add_column("network", overflow="fold", min_width=12)
    table.add_column("test")
    columns = (
        "ATE (SE3) m",
        "velocity m/s",
        "tilt °",
        "NIS (3)",
        "NEES v (3)",
        "accepted",
        "worst",
    )
    for column in columns:
        table.add_column(column, justify="right")
    for name, rows in scores.items():
        for test in dict.fromkeys(s.test for s in rows):
            ate = bootstrap(values(rows, test, "ate_se3"))
            known = next(s.metrics for s in rows if s.test == test)
            cells = [f"{ate.mean:.3f} [{ate.low:.3f}, {ate.high:.3f}]"]
            cells += [
                f"{values(rows, test, metric).mean():.3f}" if metric in known else "–"
                for metric in PRINTED
            ]
            worst = "–"
            if "worst_change" in known:
                worst = f"{values(rows, test, 'worst_change').max():.1e}"
            table.add_row(escape(name), test, *cells, worst)
        table.add_section()
    return table
