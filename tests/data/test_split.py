from collections.abc import Mapping
from itertools import combinations

import pytest

from ginio.core.recording import Recording
from ginio.data.readers.nanobench import Flight
from ginio.data.split import SIDES, Split

SIZES = {"standard": (46, 8, 17), "cross-trajectory": (45, 8, 17)}

each_split = pytest.mark.parametrize("name", SIZES)


def small(**sides: Mapping[str, str]) -> Split:
    default = {"train": {"a": "00", "b": "01"}, "val": {"c": "02"}, "test": {"d": "03"}}
    return Split("set", "small", **{**default, **sides})


@each_split
def test_a_shipped_split_loads(name: str) -> None:
    split = Split.load("nanobench", name)
    assert (split.dataset, split.name) == ("nanobench", name)
    assert (len(split.train), len(split.val), len(split.test)) == SIZES[name]
    assert [split[side] for side in SIDES] == [split.train, split.val, split.test]


@each_split
def test_no_content_and_no_name_is_on_two_sides(name: str) -> None:
    split = Split.load("nanobench", name)
    for one, other in combinations(SIDES, 2):
        assert set(split[one]).isdisjoint(split[other])
        assert set(split[one].values()).isdisjoint(split[other].values())


@each_split
def test_hashes_are_sha256(name: str) -> None:
    split = Split.load("nanobench", name)
    for content in (content for side in SIDES for content in split[side].values()):
        assert len(content) == 64
        assert set(content) <= set("0123456789abcdef")


def test_shapes_of_the_cross_trajectory_test_are_new() -> None:
    split = Split.load("nanobench", "cross-trajectory")
    held_out = ("B5_helix", "B8_star", "B10_lissajous")
    assert all(name.startswith(held_out) for name in split.test)
    assert not any(name.startswith(held_out) for name in (*split.train, *split.val))


@pytest.mark.parametrize("side", ["val", "test"])
def test_a_copy_on_another_side_is_refused_and_named(side: str) -> None:
    message = rf"split 'small': {side}/copy has the same content as train/b; expected .* once"
    with pytest.raises(ValueError, match=message):
        small(**{side: {"x": "08", "copy": "01"}})


def test_a_copy_on_one_side_is_refused_and_named() -> None:
    with pytest.raises(ValueError, match="train/copy has the same content as train/a"):
        small(train={"a": "00", "b": "01", "copy": "00"})


def test_the_hash_says_what_is_on_which_side() -> None:
    sha256 = small().sha256
    assert len(sha256) == 64
    assert small(train={"a": "00"}, val={"c": "02", "b": "01"}).sha256 != sha256
    assert small(train={"a": "00"}).sha256 != sha256
    assert small(val={"d": "03"}, test={"c": "02"}).sha256 != sha256
    assert small(test={"d": "09"}).sha256 != sha256


def test_the_hash_does_not_see_names_and_order() -> None:
    renamed = small(train={"z": "01", "y": "00"}, test={"x": "03"})
    assert renamed.sha256 == small().sha256
    assert Split("other", "name", renamed.train, renamed.val, renamed.test).sha256 == renamed.sha256


def test_the_shipped_splits_differ() -> None:
    assert len({Split.load("nanobench", name).sha256 for name in SIZES}) == len(SIZES)


@pytest.mark.parametrize(("dataset", "name"), [("nanobench", "random"), ("other", "standard")])
def test_an_unknown_split_names_the_known_ones(dataset: str, name: str) -> None:
    known = "expected one of .*nanobench-cross-trajectory, nanobench-standard"
    with pytest.raises(ValueError, match=f"no split {dataset}-{name}; {known}"):
        Split.load(dataset, name)


@each_split
def test_real_flights_are_those_of_the_split(
    name: str, nanobench_flights: Mapping[str, tuple[Flight, Recording | None]]
) -> None:
    on_disk = {flight.sha256: recording for flight, recording in nanobench_flights.values()}
    split = Split.load("nanobench", name)
    for content in (content for side in SIDES for content in split[side].values()):
        assert on_disk.get(content) is not None


def test_the_standard_split_agrees_with_an_independent_inspection(
    nanobench_qa: Mapping[str, Mapping[str, str]],
) -> None:
    split = Split.load("nanobench", "standard")
    for side in SIDES:
        expected = {
            name: row["sha256"]
            for name, row in nanobench_qa.items()
            if row["split_standard"] == side
        }
        assert split[side] == expected
