import hashlib
from pathlib import Path

import pytest
from tiny_runs import TINY, make_run

from ginio.data import sources
from ginio.data.export import write_nanobench
from ginio.data.readers import nanobench
from ginio.data.split import Split
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed, fly
from ginio.data.table import DataError
from ginio.evaluation import unseen
from ginio.evaluation.unseen import exposure, exposures, made_flight, recorded_flight

NAMES = ("circle_slow_0000_rep1", "star_slow_0001_rep1", "ramp_slow_0002_rep1")
ON_NANOBENCH = make_run(TINY, data="nanobench", split="standard")
ON_SYNTHETIC = make_run(TINY, data="synthetic-quadrotor", split="generated")
UNKNOWN = make_run(TINY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four flights, of which the last is not in the split."""
    root = tmp_path_factory.mktemp("flights")
    shapes = (Shape.CIRCLE, Shape.STAR, Shape.RAMP, Shape.OVAL)
    config = QuadrotorConfig(shapes=shapes, speeds=(Speed.SLOW,), duration_s=15.0)
    for flight in fly(config, 4, seed=0):
        write_nanobench(flight, root, compressed=flight.name.startswith("star"))
    return root


@pytest.fixture(autouse=True)
def split(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Split:
    """In place of the shipped one: a flight on each side."""
    files = nanobench.files(folder)
    train, val, test = ({name: nanobench.content_sha256(files[name])} for name in NAMES)
    made = Split("nanobench", "standard", train, val, {"absent_rep1": "0" * 64, **test})
    monkeypatch.setattr(Split, "load", lambda _dataset, _name: made)
    return made


def test_the_made_flight_is_none_of_the_training_flights() -> None:
    assert unseen.UNSEEN_SEED not in sources.SYNTHETIC_SEEDS.values()
    flight = made_flight("star_fast")
    assert flight.recording.name == "star_fast_0000"
    assert flight.sha256 is None
    assert str(unseen.UNSEEN_SEED) in flight.origin


def test_an_unknown_kind_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"'star_quick'; expected one of .*star_fast"):
        made_flight("star_quick")


def test_content_is_hashed_as_it_is_unpacked(folder: Path) -> None:
    plain = folder / f"{NAMES[0]}.csv"
    packed = folder / f"{NAMES[1]}.csv.gz"
    assert nanobench.content_sha256(plain) == hashlib.sha256(plain.read_bytes()).hexdigest()
    found = {flight.name: flight.sha256 for flight in nanobench.inspect(folder)}
    assert nanobench.content_sha256(packed) == found[NAMES[1]]


def test_the_first_test_flight_in_the_folder_is_shown_and_only_it_is_parsed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    read = nanobench.read
    monkeypatch.setattr(
        nanobench, "read", lambda root, name: parsed.append(name) or read(root, name)
    )
    monkeypatch.setattr(nanobench, "scan", None)
    flight = recorded_flight(folder, None)
    assert flight.recording.name == NAMES[2]
    assert flight.origin == "NanoBench, test side of the standard split"
    assert parsed == [NAMES[2]]


def test_a_name_is_not_enough_to_be_a_test_flight(folder: Path, tmp_path: Path) -> None:
    (tmp_path / f"{NAMES[2]}.csv").write_bytes((folder / f"{NAMES[0]}.csv").read_bytes())
    with pytest.raises(DataError, match="found 1 flights, none of them on the test side"):
        recorded_flight(tmp_path, None)
    flight = recorded_flight(tmp_path, NAMES[2])
    assert flight.origin == "NanoBench, train side of the standard split"


def test_a_flight_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="no flight 'B2_rep1'"):
        recorded_flight(folder, "B2_rep1")
    with pytest.raises(DataError, match="no such folder"):
        recorded_flight(folder / "deeper", None)


@pytest.mark.parametrize(
    ("name", "on_nanobench", "on_synthetic"),
    [
        (NAMES[0], "train", None),
        (NAMES[1], "val", None),
        (NAMES[2], None, None),
        ("oval_slow_0003_rep1", None, "unknown"),
    ],
)
def test_networks_are_asked_what_they_saw(
    folder: Path, name: str, on_nanobench: str | None, on_synthetic: str | None
) -> None:
    flight = recorded_flight(folder, name)
    expected = "test" if name == NAMES[2] else on_nanobench
    assert exposure(ON_NANOBENCH, flight) == expected
    assert exposure(ON_SYNTHETIC, flight) == on_synthetic
    assert exposure(UNKNOWN, flight) == "unknown"


def test_no_network_saw_the_made_flight() -> None:
    flight = made_flight("ramp_slow")
    assert exposure(ON_NANOBENCH, flight) is None
    assert exposure(ON_SYNTHETIC, flight) is None
    assert exposure(UNKNOWN, flight) == "unknown"


def test_what_networks_saw_is_said_by_name(folder: Path) -> None:
    runs = {"a": ON_NANOBENCH, "b": ON_NANOBENCH, "c": ON_SYNTHETIC, "d": UNKNOWN}
    known = {label: runs[label] for label in "abc"}
    shown = [recorded_flight(folder, name) for name in NAMES]
    assert exposures(runs, shown[0]) == "SEEN IN TRAINING by a and b; perhaps seen in training by d"
    assert exposures(known, shown[1]) == "used to validate a and b"
    assert exposures(known, shown[2]) == "not seen in training by any of these networks"
