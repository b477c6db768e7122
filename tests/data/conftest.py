"""Where the real recordings are, if they are here, and what others found in them."""

import csv
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from ginio.core.recording import Recording
from ginio.data.readers import nanobench
from ginio.data.readers.nanobench import Flight


@pytest.fixture(scope="session")
def nanobench_root() -> Path:
    """The folder of real NanoBench flights; without one the test is skipped."""
    beside = Path(__file__).parents[3] / "shared" / "data" / "nanobench" / "flights"
    root = Path(os.environ.get("GINIO_NANOBENCH", beside))
    if not root.is_dir():
        pytest.skip(f"no NanoBench flights in {root}; GINIO_NANOBENCH may name their folder")
    return root


@pytest.fixture(scope="session")
def nanobench_qa(nanobench_root: Path) -> Mapping[str, Mapping[str, str]]:
    """An independent inspection of the real flights, by name."""
    path = nanobench_root.parent / "qa.csv"
    if not path.is_file():
        pytest.skip(f"no {path} to compare the flights with")
    with path.open(encoding="utf-8", newline="") as file:
        return {row["stem"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="session")
def nanobench_flights(nanobench_root: Path) -> Mapping[str, tuple[Flight, Recording | None]]:
    """Every real flight, read once for all tests."""
    return {flight.name: (flight, found) for flight, found in nanobench.scan(nanobench_root)}
