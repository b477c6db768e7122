"""The flight that `ginio demo` takes from the real dataset."""

from pathlib import Path

from ginio.data.split import Split
from ginio.evaluation.unseen import recorded_flight


def test_the_first_test_flight_of_the_real_dataset_is_shown(nanobench_root: Path) -> None:
    test = Split.load("nanobench", "standard").test
    flight = recorded_flight(nanobench_root, None)
    assert flight.recording.name == next(iter(test))
    assert flight.sha256 == test[flight.recording.name]


def test_a_training_flight_is_told_from_its_content(nanobench_root: Path) -> None:
    flight = recorded_flight(nanobench_root, "B2_circle_fast_rep1")
    assert flight.origin == "NanoBench, train side of the standard split"
