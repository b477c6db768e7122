"""`ginio demo`: one flight, tracked as recorded and with its sensor remounted."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.table import Table
from rich.text import Text

import ginio
from ginio.cli.console import CONSOLE
from ginio.evaluation.page import STYLES, Story, render
from ginio.evaluation.remount import Mounting, Row, Track, describe, mountings, reading, track
from ginio.evaluation.unseen import ShownFlight, exposures, made_flight, recorded_flight
from ginio.runtime.checkpoint import Run
from ginio.runtime.zoo import load

# A flight with climbs and turns both ways, neither the easiest kind nor the hardest.
MADE_KIND = "trefoil_medium"
ROTATION_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Track one flight that was not trained on, with its sensor mounted in four ways.

    Prints a table and writes a page to look at in a browser. Works offline.
    """

    data: Path | None = None
    """Folder of NanoBench flights; without one, a flight is simulated."""
    flight: str | None = None
    """A flight of the folder, by default one that was kept for testing; or the shape and speed of
    the simulated one, trefoil_medium by default."""
    network: str | None = None
    """Name or run directory; ginio-rs-synthetic, or ginio-rs-nanobench with --data."""
    baseline: str | None = None
    """Name or run directory; resnet1d-synthetic, or resnet1d-nanobench with --data."""
    out: Path = Path("demo.html")
    """The page, one file."""

    def __call__(self) -> int:
        """Track, print the table, write the page."""
        runs = self.runs()
        with one_thread():
            with CONSOLE.status("preparing a flight"):
                flight = self.shown_flight()
            rows = track_all(runs, flight)
        label, baseline = runs
        seen, told = exposures(runs, flight), reading(rows, label=label, baseline=baseline)
        CONSOLE.print(remount_table(rows, f"{flight.recording.name}, {flight.origin}\n{seen}"))
        CONSOLE.print(Text(told))
        story = Story(
            flight=flight.recording.name,
            origin=flight.origin,
            exposure=seen,
            reading=told,
            networks={name: describe(run) for name, run in runs.items()},
            rows=rows,
            provenance=provenance(runs, flight),
        )
        page = render(story)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(page, encoding="utf-8")
        CONSOLE.print(Text(f"See it in a browser: {self.out}"), soft_wrap=True)
        return 0

    def runs(self) -> dict[str, Run]:
        """The network and the baseline by their names, in this order."""
        kind = "synthetic" if self.data is None else "nanobench"
        network = self.network or f"ginio-rs-{kind}"
        baseline = self.baseline or f"resnet1d-{kind}"
        if network == baseline:
            raise ValueError(f"expected two different networks; found {network} twice")
        return {name: load(name) for name in (network, baseline)}

    def shown_flight(self) -> ShownFlight:
        """What is tracked."""
        if self.data is None:
            return made_flight(self.flight or MADE_KIND)
        return recorded_flight(self.data, self.flight)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one core: threads gain little here, and a lot is lost if they must share cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def track_all(runs: Mapping[str, Run], flight: ShownFlight) -> list[Row]:
    """Every network on every mounting."""
    with CONSOLE.status("") as status:

        def track_one(label: str, mounting: Mounting) -> Track:
            status.update(f"tracking with {label}, {mounting.name}")
            return track(runs[label], flight.recording, mounting.R_ms)

        return [
            Row(mounting, {label: track_one(label, mounting) for label in runs})
            for mounting in mountings(seed=ROTATION_SEED)
        ]


def remount_table(rows: Sequence[Row], title: str) -> Table:
    """Path errors in metres, for readers who know nothing of what was done."""
    table = Table(
        title=Text(title),
        caption="Path error: how far the computed path is from the true one, root mean square, "
        "after the best shift and rotation. The flight is the same in every row; only the sensor "
        "is mounted in another direction. Standing still is the error of a path that never moves.",
    )
    table.add_column("sensor mounting")
    for name, style in zip(rows[0].tracks, STYLES, strict=True):
        table.add_column(Text(f"path error of\n{name}"), justify="right", style=style["color"])
    table.add_column("path error of\nstanding still", justify="right")
    for row in rows:
        errors = [of_network.errors["ate_se3"] for of_network in row.tracks.values()]
        cells = [f"{error:.3f} m" for error in (*errors, row.standing_still)]
        table.add_row(row.mounting.name, *cells)
    return table


def provenance(runs: Mapping[str, Run], flight: ShownFlight) -> list[tuple[str, str]]:
    """What made the figures, so that they can be made again."""
    lines = [("flight", f"{flight.recording.name}, {flight.origin}")]
    if flight.sha256 is not None:
        lines.append(("its SHA-256", flight.sha256))
    lines += [(name, trained_on(run)) for name, run in runs.items()]
    return [*lines, ("random rotation", f"seed {ROTATION_SEED}"), ("ginio", ginio.__version__)]


def trained_on(run: Run) -> str:
    """What a network's card says of its training."""
    known = run.card.provenance
    told = [f"{key} {known[key]}" for key in ("data", "split", "steps", "commit") if key in known]
    turn = known.get("config", {}).get("augment", {}).get("turn")
    if turn is not None:
        told.append(f"windows turned at random: {turn}")
    return ", ".join(told) or "its card does not say on what it was trained"
