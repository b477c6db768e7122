import hashlib
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import pytest
import synthetic_nanobench as synthetic
import torch

from ginio.core.recording import Recording
from ginio.data import sources
from ginio.data.corpus import Corpus
from ginio.data.readers import nanobench
from ginio.data.readers.nanobench import Flight
from ginio.data.sources import Source, open_source
from ginio.data.split import SIDES, Side, Split
from ginio.data.table import DataError
from ginio.evaluation.protocols import ProtocolConfig, trivial_baselines

SPLITS = {"standard": (46, 8, 17), "cross-trajectory": (45, 8, 17)}
ROWS = 560
NAMES: Mapping[Side, tuple[str, ...]] = {
    "train": ("B1_loop_rep1", "B1_loop_rep2"),
    "val": ("B2_loop_rep1",),
    "test": ("B3_loop_rep10", "B3_loop_rep9"),
}


class Scans:
    """Counts how often text is parsed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._scan = nanobench.scan
        monkeypatch.setattr(nanobench, "scan", self)

    def __call__(self, root: Path) -> Iterator[tuple[Flight, Recording | None]]:
        self.count += 1
        return self._scan(root)


@pytest.fixture(autouse=True)
def nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GINIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GINIO_NANOBENCH", raising=False)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Scans:
    return Scans(monkeypatch)


@pytest.fixture
def flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five small flights, and a split that knows them by content."""
    root, sides = tmp_path / "flights", dict[str, dict[str, str]]()
    for i, side in enumerate(SIDES):
        sides[side] = {}
        for j, name in enumerate(NAMES[side]):
            content = synthetic.csv(synthetic.table(ROWS, start_s=10 * i + j))
            synthetic.write(root / side / f"{name}.csv.gz", content)
            sides[side][name] = hashlib.sha256(content).hexdigest()
    split = Split("nanobench", "tiny", **sides)
    monkeypatch.setattr(Split, "load", lambda _dataset, _name: split)
    return root


def open_tiny(root: Path | None, decimate_by: int = 1) -> Source:
    return open_source("nanobench", split="tiny", decimate_by=decimate_by, root=root)


# Flights on disk


def test_each_side_holds_its_flights(flights: Path) -> None:
    source = open_tiny(flights)
    assert {side: corpus.names for side, corpus in source.corpora.items()} == NAMES
    for corpus in source.corpora.values():
        assert len(corpus) in range((ROWS - 2) * len(corpus.names), ROWS * len(corpus.names) + 1)
    assert source.rate_hz == 100.0
    assert source.split == "tiny"
    assert source.split_sha256 == Split.load("nanobench", "tiny").sha256


def test_decimation_is_said_in_the_rate(flights: Path) -> None:
    full, less = open_tiny(flights), open_tiny(flights, 4)
    assert less.rate_hz == 25.0
    assert len(less.corpora["val"]) == len(full.corpora["val"]) // 4
    assert_equal(less.corpora["val"].acc_s[3], full.corpora["val"].acc_s[12:16].mean(0))


def assert_equal(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)


def test_a_second_start_parses_nothing(flights: Path, scans: Scans) -> None:
    first, second = open_tiny(flights), open_tiny(flights, 2)
    assert scans.count == 1
    assert first.split_sha256 == second.split_sha256
    (flights / "val" / "notes.txt").write_text("of today")
    open_tiny(flights)
    assert scans.count == 2


def test_a_flight_is_known_by_its_content_not_its_name(flights: Path) -> None:
    """Under another name, unpacked, in another folder, with strangers beside it."""
    packed = flights / "test" / "B3_loop_rep9.csv.gz"
    renamed = flights / "B7_other_rep4.csv"
    synthetic.write(renamed, nanobench.read_bytes(packed))
    packed.unlink()
    synthetic.write(flights / "B8_rep1.csv", synthetic.csv(synthetic.table(ROWS, start_s=99)))
    synthetic.write(flights / "B9_rep1.csv", synthetic.csv(synthetic.table(100)))
    source = open_tiny(flights)
    assert source.corpora["test"].names == ("B3_loop_rep10", "B7_other_rep4")
    assert source.corpora["train"].names == NAMES["train"]


def test_missing_flights_are_named(flights: Path) -> None:
    (flights / "test" / "B3_loop_rep9.csv.gz").unlink()
    with pytest.raises(DataError) as error:
        open_tiny(flights)
    assert str(error.value) == (
        f"{flights}: of the tiny split's test side B3_loop_rep9 is not here; expected all 2 "
        "flights, with the published content"
    )
    for name in NAMES["train"]:
        (flights / "train" / f"{name}.csv.gz").unlink()
    with pytest.raises(DataError, match=r"train side B1_loop_rep1, B1_loop_rep2 are not here"):
        open_tiny(flights)


def test_of_many_missing_flights_a_few_are_named(
    flights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = {f"B1_loop_rep{i}": f"{i}" for i in range(9)}
    split = Split("nanobench", "tiny", train=train, val={}, test={})
    monkeypatch.setattr(Split, "load", lambda _dataset, _name: split)
    with pytest.raises(DataError, match=r"rep0, .*, B1_loop_rep4 and 4 more are not here; .* 9 f"):
        open_tiny(flights)


def test_a_flight_with_another_content_is_missing(flights: Path) -> None:
    path = flights / "val" / "B2_loop_rep1.csv.gz"
    content = nanobench.read_bytes(path)
    synthetic.write(path, content.replace(b"36000.0", b"36000.1", 1))
    with pytest.raises(DataError, match="val side B2_loop_rep1 is not here"):
        open_tiny(flights)


def test_the_folder_is_found_by_argument_then_by_variable(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GINIO_NANOBENCH", str(flights))
    assert open_tiny(None).corpora["val"].names == NAMES["val"]
    monkeypatch.setenv("GINIO_NANOBENCH", str(tmp_path / "nowhere"))
    assert open_tiny(flights).corpora["val"].names == NAMES["val"]
    with pytest.raises(DataError, match="nowhere: no such folder"):
        open_tiny(None)


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_folder_the_user_is_asked(
    value: str | None, flights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv("GINIO_NANOBENCH", value)
    monkeypatch.chdir(flights)
    with pytest.raises(ValueError, match="Give --data PATH or set GINIO_NANOBENCH"):
        open_tiny(None)


def test_an_unknown_split_is_refused_before_anything_is_read(tmp_path: Path, scans: Scans) -> None:
    with pytest.raises(ValueError, match=r"no split nanobench-random; expected one of .*standard"):
        open_source("nanobench", split="random", decimate_by=1, root=tmp_path)
    assert scans.count == 0


# Flights made up


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SYNTHETIC_FLIGHTS", {"train": 2, "val": 1, "test": 1})


def parts(corpus: Corpus) -> list[torch.Tensor]:
    return [corpus.p_w[corpus.rows(i)] for i in range(len(corpus.names))]


@pytest.mark.usefixtures("few")
def test_synthetic_sides_are_disjoint_and_always_the_same(tmp_path: Path) -> None:
    first, again = (
        open_source("synthetic-quadrotor", split="standard", decimate_by=4) for _ in range(2)
    )
    assert [len(first.corpora[side].names) for side in SIDES] == [2, 1, 1]
    assert (first.rate_hz, first.split) == (25.0, "generated")
    for side in SIDES:
        assert torch.equal(first.corpora[side].acc_s, again.corpora[side].acc_s)
    for one, other in combinations([p for side in SIDES for p in parts(first.corpora[side])], 2):
        rows = min(len(one), len(other))
        assert float((one[:rows] - other[:rows]).norm(dim=1).max()) > 0.1
    assert not (tmp_path / "cache").exists()


def test_synthetic_seeds_are_one_for_each_side() -> None:
    assert len(set(sources.SYNTHETIC_SEEDS.values())) == len(SIDES)


def test_what_was_made_up_is_written_down(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def written() -> str:
        return open_source("synthetic-quadrotor", split="x", decimate_by=10).split_sha256

    first = written()
    assert written() == first
    monkeypatch.setattr(sources, "SYNTHETIC_SEEDS", {"train": 1, "val": 2, "test": 4})
    assert written() != first


# Real flights


@pytest.fixture(scope="module")
def real_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", SPLITS)
def test_real_splits_open_and_a_second_start_parses_nothing(
    name: str, nanobench_root: Path, real_cache: Path, monkeypatch: pytest.MonkeyPatch, scans: Scans
) -> None:
    monkeypatch.setenv("GINIO_CACHE", str(real_cache))
    is_cold = not any(real_cache.iterdir())
    first, second = (
        open_source("nanobench", split=name, decimate_by=4, root=nanobench_root) for _ in range(2)
    )
    assert scans.count == int(is_cold)
    split = Split.load("nanobench", name)
    assert first.split_sha256 == second.split_sha256 == split.sha256
    for side, count in zip(SIDES, SPLITS[name], strict=True):
        corpus, stored = first.corpora[side], second.corpora[side]
        assert len(corpus.names) == count
        assert set(corpus.names) == set(split[side])
        assert torch.equal(corpus.acc_s, stored.acc_s)
        assert torch.equal(corpus.onboard_R_ws, stored.onboard_R_ws)
        assert bool(torch.isfinite(corpus.onboard_R_ws).all())


@pytest.mark.parametrize("factor", [1, 4])
def test_standing_still_on_the_real_test_side_has_its_known_error(
    factor: int, nanobench_root: Path, real_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GINIO_CACHE", str(real_cache))
    source = open_source("nanobench", split="standard", decimate_by=factor, root=nanobench_root)
    still = trivial_baselines(source.corpora["test"], ProtocolConfig(tests=("ID/ID",)))
    errors = [score.metrics["ate_se3"] for score in still["standing still"]]
    assert len(errors) == 17
    assert sum(errors) / len(errors) == pytest.approx(0.857, abs=0.01)
