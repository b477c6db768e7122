"""`ginio remount`: networks on real recordings of a vehicle whose sensor was mounted anew."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.markup import escape
from rich.table import Table

from ginio.cli.console import CONSOLE
from ginio.cli.device import DEFAULT_DEVICE, check_device
from ginio.cli.evaluate import decimation, values
from ginio.data.windows import AttitudeSource
from ginio.evaluation.protocols import Score
from ginio.evaluation.remounting import NOMINAL, TC1, TC2, Device, RemountingConfig, folder_scores
from ginio.evaluation.statistics import bootstrap
from ginio.runtime.checkpoint import Run
from ginio.runtime.zoo import load
from ginio.training.provenance import commit, versions


@dataclass(frozen=True, kw_only=True)
class Remount:
    """Score networks on recordings of several mountings, a folder of NanoBench's form for each.

    Networks are not told how the sensor is mounted; the recorded attitude is the sensor's own.
    """

    runs: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Names of trained networks, or run directories; gains are over the last."""
    nominal: Path
    """Recordings of the mounting that networks were trained on."""
    tc1: Path | None = None
    """Recordings of another mounting."""
    tc2: Path | None = None
    """And of a third."""
    stride: int = 2
    """Samples between the ends of neighbouring windows."""
    attitude: Annotated[AttitudeSource, tyro.conf.EnumChoicesFromValues] = AttitudeSource.TRUTH
    device: str = DEFAULT_DEVICE
    json: Path | None = None
    """Write every score of every recording to this file."""

    def __call__(self) -> int:
        """Score, print the table, and write the results."""
        if not self.runs:
            raise ValueError("no network to score; expected a run directory or a name")
        check_device(self.device)
        # TF32 keeps ten bits, and its rounding obeys no law of rotations.
        torch.backends.cudnn.allow_tf32 = False
        config = RemountingConfig(stride=self.stride, attitude=self.attitude)
        scores: dict[str, list[Score]] = {}
        for name in self.runs:
            device = self.as_device(load(name))
            with CONSOLE.status(escape(name)):
                scores[name] = list(folder_scores(device, self.folders(), config))
        CONSOLE.print(remount_table(scores, self.attitude))
        if self.json is not None:
            document = {
                "command": f"ginio remount {' '.join(self.runs)}",
                "folders": {name: str(path) for name, path in self.folders().items()},
                "commit": commit(),
                "versions": versions(),
                "scores": {name: [asdict(s) for s in rows] for name, rows in scores.items()},
            }
            self.json.parent.mkdir(parents=True, exist_ok=True)
            self.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return 0

    def folders(self) -> dict[str, Path]:
        """Where the recordings of each mounting lie."""
        asked = {NOMINAL: self.nominal, TC1: self.tc1, TC2: self.tc2}
        return {name: path for name, path in asked.items() if path is not None}

    def as_device(self, run: Run) -> Device:
        """A network with what it needs to be asked."""
        run.network.to(self.device)
        return Device(
            frontend=run.frontend(),
            representation=run.card.representation,
            window=run.card.network.window,
            decimate_by=decimation(run),
            device=self.device,
        )


def remount_table(scores: Mapping[str, Sequence[Score]], attitude: AttitudeSource) -> Table:
    """Mean ATE and its interval for each network and mounting."""
    table = Table(
        title=f"Remounting; attitude: {attitude.value}",
        caption="ATE (SE3), mean over recordings [95 %], and in percent of the path. Gain: the "
        "last network's error over this one's.",
    )
    table.add_column("network")
    table.add_column("mounting")
    for column in ("recordings", "ATE m", "of the path", "gain"):
        table.add_column(column, justify="right")
    reference = list(scores.values())[-1]
    for name, rows in scores.items():
        for mounting in dict.fromkeys(s.test for s in rows):
            ate = bootstrap(values(rows, mounting, "ate_se3"))
            gain = float(values(reference, mounting, "ate_se3").mean()) / ate.mean
            table.add_row(
                escape(name),
                mounting,
                str(len(values(rows, mounting, "ate_se3"))),
                f"{ate.mean:.3f} [{ate.low:.3f}, {ate.high:.3f}]",
                f"{values(rows, mounting, 'normalised_ate').mean():.1f} %",
                f"{gain:.1f}",
            )
        table.add_section()
    return table
