"""One flight to show networks on, and whether they saw it before."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ginio.core.recording import Recording
from ginio.data import synthetic
from ginio.data.readers import nanobench
from ginio.data.split import Side, Split
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed
from ginio.data.table import DataError
from ginio.runtime.checkpoint import Run

# Not one of `ginio.data.sources.SYNTHETIC_SEEDS`: no network was trained or chosen on its flights.
UNSEEN_SEED = 2026
STANDARD = "standard"
Exposure = Side | Literal["unknown"]


@dataclass(frozen=True, slots=True)
class ShownFlight:
    """A recording with where it came from; ``sha256`` of its file, or None if it was made here."""

    recording: Recording
    origin: str
    sha256: str | None = None


def made_flight(kind: str) -> ShownFlight:
    """A synthetic flight of a shape and speed such as ``trefoil_medium``."""
    kinds = {f"{shape.value}_{speed.value}": (shape, speed) for shape in Shape for speed in Speed}
    if kind not in kinds:
        raise ValueError(f"no synthetic flight {kind!r}; expected one of {', '.join(kinds)}")
    shape, speed = kinds[kind]
    config = QuadrotorConfig(shapes=(shape,), speeds=(speed,))
    recording = synthetic.fly_one(config, 0, seed=UNSEEN_SEED)
    return ShownFlight(recording, f"simulated, seed {UNSEEN_SEED}")


def recorded_flight(root: Path, name: str | None) -> ShownFlight:
    """A NanoBench flight by its name, or the first of the standard split's test side.

    Only that flight is parsed.
    """
    paths, split = nanobench.files(root), Split.load("nanobench", STANDARD)
    chosen = _first_of_test_side(root, paths, split) if name is None else name
    recording = nanobench.read(root, chosen)
    content = nanobench.content_sha256(paths[chosen])
    side = split.side_of(content)
    origin = "no flight of the public NanoBench"
    if side is not None:
        origin = f"NanoBench, {side} side of the {STANDARD} split"
    return ShownFlight(recording, origin, content)


def _first_of_test_side(root: Path, paths: Mapping[str, Path], split: Split) -> str:
    for name, content in split.test.items():
        if name in paths and nanobench.content_sha256(paths[name]) == content:
            return name
    raise DataError(
        root,
        f"found {len(paths)} flights, none of them on the test side of the {split.name} split; "
        "expected one, or the name of another flight",
    )


def exposure(run: Run, flight: ShownFlight) -> Exposure | None:
    """The side of a network's own training on which a flight was; None if on no side."""
    provenance = run.card.provenance
    data = provenance.get("data")
    if data is None:
        return "unknown"
    if flight.sha256 is None:
        return None
    own = str(provenance.get("split", STANDARD)) if data == "nanobench" else STANDARD
    side = Split.load("nanobench", own).side_of(flight.sha256)
    if data == "nanobench":
        return side
    # A published flight is none of the simulated ones; of any other file nothing is known.
    return "unknown" if side is None else None


def exposures(runs: Mapping[str, Run], flight: ShownFlight) -> str:
    """Which networks saw a flight before, in words."""
    found = {label: exposure(run, flight) for label, run in runs.items()}
    told: tuple[tuple[Exposure, str], ...] = (
        ("train", "SEEN IN TRAINING by"),
        ("val", "used to validate"),
        ("unknown", "perhaps seen in training by"),
    )
    parts = [
        f"{words} {' and '.join(labels)}"
        for side, words in told
        if (labels := [label for label, of_label in found.items() if of_label == side])
    ]
    return "; ".join(parts) or "not seen in training by any of these networks"
