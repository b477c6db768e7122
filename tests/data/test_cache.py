import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from strategies import recording, rotations

from ginio.core.recording import ImuSequence, Recording
from ginio.data import cache
from ginio.data.cache import cache_folder, cached, fingerprint
from ginio.data.corpus import Corpus

Found = Sequence[tuple[str, Recording]]


class Reader:
    """Counts how often text would have been parsed."""

    def __init__(self, recordings: Found) -> None:
        self.recordings = recordings
        self.parses = 0

    def __call__(self) -> Found:
        self.parses += 1
        return self.recordings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GINIO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "flights" / "deeper"
    place.mkdir(parents=True)
    for name in ("a_rep1.csv", "b_rep1.csv"):
        (place / name).write_text(f"content of {name}")
    return tmp_path / "flights"


@pytest.fixture
def reader() -> Reader:
    aboard = replace(
        recording(30, torch.float32), name="a", onboard_R_ws=rotations(30, torch.float32)
    )
    return Reader([("00ff", aboard), ("01", replace(recording(7, torch.float64), name="b/ä"))])


def tensors(r: Recording) -> list[torch.Tensor]:
    onboard = [] if r.onboard_R_ws is None else [r.onboard_R_ws]
    return [
        r.imu.t,
        r.imu.acc_s,
        r.imu.gyr_s,
        r.truth.t,
        r.truth.R_ws,
        r.truth.p_w,
        r.truth.v_w,
        *onboard,
    ]


def assert_same(found: Found, expected: Found) -> None:
    assert [content for content, _ in found] == [content for content, _ in expected]
    for (_, one), (_, other) in zip(found, expected, strict=True):
        assert one.name == other.name
        assert (one.onboard_R_ws is None) == (other.onboard_R_ws is None)
        for a, b in zip(tensors(one), tensors(other), strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)


def one_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_a_second_read_parses_nothing_and_gives_every_bit(root: Path, reader: Reader) -> None:
    assert_same(cached(root, reader), reader.recordings)
    assert_same(cached(root, reader), reader.recordings)
    assert reader.parses == 1


def test_a_cache_is_one_file_and_leaves_nothing_half_written(
    root: Path, folder: Path, reader: Reader
) -> None:
    cached(root, reader)
    assert one_file(folder).name == f"{fingerprint(root)}.safetensors"


def test_values_that_are_not_numbers_come_back(root: Path, reader: Reader) -> None:
    content, strange = reader.recordings[0]
    strange.truth.v_w[3, 1], strange.imu.acc_s[2, 0] = torch.nan, -torch.inf
    strange.imu.gyr_s[0, 0] = -0.0
    reader.recordings = [(content, strange)]
    cached(root, reader)
    ((_, found),) = cached(root, reader)
    for a, b in zip(tensors(found), tensors(strange), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_recordings_that_share_memory_are_stored(root: Path, reader: Reader) -> None:
    """The truth may be on the very clock of the IMU, and a flight may be a part of another."""
    _, whole = reader.recordings[0]
    imu = ImuSequence(whole.imu.t, whole.imu.acc_s, whole.imu.acc_s)
    shared = replace(whole, imu=imu, onboard_R_ws=whole.truth.R_ws)
    part = replace(
        whole.imu,
        t=whole.imu.t[3:9],
        acc_s=whole.imu.acc_s[3:9],
        gyr_s=whole.imu.gyr_s.mT.contiguous().mT[3:9],
    )
    reader.recordings = [("0", shared), ("1", shared), ("2", replace(shared, imu=part))]
    cached(root, reader)
    assert_same(cached(root, reader), reader.recordings)
    assert reader.parses == 1


# What makes a cache old


def touch(root: Path) -> None:
    path = root / "deeper" / "a_rep1.csv"
    later = path.stat().st_mtime_ns + 1
    os.utime(path, ns=(later, later))


def rewrite(root: Path) -> None:
    path = root / "deeper" / "a_rep1.csv"
    before = path.stat().st_mtime_ns
    path.write_text("longer than it was before")
    os.utime(path, ns=(before, before))


def add(root: Path) -> None:
    (root / "c_rep1.csv").write_text("")


def remove(root: Path) -> None:
    (root / "deeper" / "b_rep1.csv").unlink()


def rename(root: Path) -> None:
    (root / "deeper" / "b_rep1.csv").rename(root / "deeper" / "b_rep2.csv")


def move(root: Path) -> None:
    (root / "deeper").rename(root / "elsewhere")


@pytest.mark.parametrize("change", [touch, rewrite, add, remove, rename, move])
def test_a_folder_that_changed_is_read_again(change: object, root: Path, reader: Reader) -> None:
    cached(root, reader)
    assert callable(change)
    change(root)
    cached(root, reader)
    assert reader.parses == 2
    cached(root, reader)
    assert reader.parses == 2


def test_another_folder_with_the_same_files_is_another(
    root: Path, tmp_path: Path, reader: Reader
) -> None:
    cached(root, reader)
    copy = tmp_path / "copy" / "deeper"
    copy.mkdir(parents=True)
    for path in (root / "deeper").iterdir():
        (copy / path.name).write_text(path.read_text())
        os.utime(copy / path.name, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    cached(copy.parent, reader)
    assert reader.parses == 2


def test_the_spelling_of_a_folder_does_not_matter(
    root: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(root, reader)
    monkeypatch.chdir(root.parent)
    cached(Path("flights"), reader)
    cached(root / "deeper" / "..", reader)
    assert reader.parses == 1


def test_another_form_of_the_cache_is_another_cache(
    root: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(root, reader)
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    cached(root, reader)
    assert reader.parses == 2


# A cache that cannot be used


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def overwritten(path: Path) -> None:
    path.write_bytes(b"\xff" * 4096)


def without_index(path: Path) -> None:
    save_file(load_file(path), path)


def index_without_tensors(path: Path) -> None:
    save_file(load_file(path), path, metadata={"index": '[["00", "a"], ["01", "b"], ["02", "c"]]'})


def index_damaged(path: Path) -> None:
    save_file(load_file(path), path, metadata={"index": '[["00", "a"'})


def clock_damaged(path: Path) -> None:
    found = load_file(path)
    save_file(found | {"0.imu.t": -found["0.imu.t"]}, path, metadata={"index": '[["00", "a"]]'})


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        emptied,
        cut_off,
        overwritten,
        without_index,
        index_without_tensors,
        index_damaged,
        clock_damaged,
    ],
)
def test_a_damaged_cache_is_made_again(
    damage: object, root: Path, folder: Path, reader: Reader
) -> None:
    cached(root, reader)
    assert callable(damage)
    damage(one_file(folder))
    assert_same(cached(root, reader), reader.recordings)
    assert reader.parses == 2
    assert_same(cached(root, reader), reader.recordings)
    assert reader.parses == 2


def test_a_folder_in_place_of_a_cache_is_done_without(
    root: Path, folder: Path, reader: Reader
) -> None:
    cached(root, reader)
    a_folder(one_file(folder))
    for parses in (2, 3):
        assert_same(cached(root, reader), reader.recordings)
        assert reader.parses == parses
    assert one_file(folder).is_dir()


def test_a_cache_folder_that_is_a_file_is_done_without(
    root: Path, folder: Path, reader: Reader
) -> None:
    folder.write_text("not a folder")
    for parses in (1, 2):
        assert_same(cached(root, reader), reader.recordings)
        assert reader.parses == parses
    assert folder.read_text() == "not a folder"


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), SafetensorError("I/O error: os error 13")]
)
def test_a_cache_folder_that_may_not_be_written_is_done_without(
    error: Exception,
    root: Path,
    folder: Path,
    reader: Reader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Simulated, as an administrator may write everything; safetensors has an error of its own."""

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cache, "save_file", refuse)
    assert_same(cached(root, reader), reader.recordings)
    assert list(folder.iterdir()) == []


def test_a_full_disk_leaves_no_half_cache(
    root: Path, folder: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(_tensors: object, path: Path, **_: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "save_file", half)
    assert_same(cached(root, reader), reader.recordings)
    assert list(folder.iterdir()) == []


def test_an_error_of_the_reader_is_not_cached(root: Path, folder: Path) -> None:
    def fail() -> Found:
        raise ValueError("line 3: expected a number")

    for _ in range(2):
        with pytest.raises(ValueError, match="line 3"):
            cached(root, fail)
    assert not folder.exists()


# Where it lies


def test_the_cache_lies_where_the_user_says(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == folder
    monkeypatch.delenv("GINIO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "ginio"
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", None):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if unset is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_folder() == tmp_path / ".cache" / "ginio"


def test_cached_recordings_make_the_same_corpus(root: Path, reader: Reader) -> None:
    cached(root, reader)
    fresh, stored = (
        Corpus.join([r for _, r in x]) for x in (reader.recordings, cached(root, reader))
    )
    assert torch.equal(fresh.acc_s, stored.acc_s)
    assert torch.equal(torch.isnan(fresh.onboard_R_ws), torch.isnan(stored.onboard_R_ws))
