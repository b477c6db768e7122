import gzip
import os
from collections.abc import Callable, Mapping
from functools import cache, reduce
from pathlib import Path

import numpy as np
import pytest
import synthetic_nanobench as synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from mutations import attempt, mutations
from scipy.spatial.transform import Rotation
from strategies import assert_near
from torch import Tensor

from ginio.core.recording import Recording
from ginio.data.readers import nanobench
from ginio.data.readers.nanobench import Flight
from ginio.data.table import DataError

ROWS = 700
G_MPS2 = 9.80665
NAME = "B2_circle_slow_rep1"
Flights = Mapping[str, tuple[Flight, Recording | None]]
Qa = Mapping[str, Mapping[str, str]]
Damage = Callable[[bytes], bytes]


@cache
def content(rows: int = ROWS, *, tail: int = 0, lead: int = 0, start_s: float = 0.0) -> bytes:
    return synthetic.csv(synthetic.table(rows, tail=tail, lead=lead, start_s=start_s))


def one_flight(folder: Path, data: bytes, name: str = NAME) -> tuple[Flight, Recording]:
    synthetic.write(folder / f"{name}.csv", data)
    (flight,) = nanobench.inspect(folder)
    return flight, nanobench.read(folder, name)


def world(R_ws: Tensor, v_s: Tensor) -> Tensor:
    return torch.einsum("tij,tj->ti", R_ws, v_s)


def refusal(root: Path, name: str = NAME) -> DataError:
    """What reading says, once it is clear that listing says the same."""
    with pytest.raises(DataError) as read:
        nanobench.read(root, name)
    with pytest.raises(DataError) as listed:
        nanobench.list_sequences(root)
    assert str(read.value) == str(listed.value)
    return read.value


# What is in a good file


@pytest.fixture
def flown(tmp_path: Path) -> Recording:
    return one_flight(tmp_path, content())[1]


def test_a_flight_is_read_back(flown: Recording) -> None:
    end = len(flown.imu)
    m = synthetic.motion(end)
    assert ROWS - 1 <= end <= ROWS
    assert flown.name == NAME
    assert flown.imu.t[0] == 0
    assert torch.equal(flown.truth.t, flown.imu.t)
    assert_near(flown.imu.t, torch.from_numpy(m.t), 1e-6)
    R_ws = torch.from_numpy(m.R_ws).float()
    assert flown.onboard_R_ws is not None
    for actual, expected in (
        (flown.imu.acc_s, m.acc_s),
        (flown.imu.gyr_s, m.gyr_s),
        (flown.truth.p_w, m.p_w),
        (flown.truth.v_w, m.v_w),
    ):
        assert_near(actual, torch.from_numpy(expected).float(), 1e-5)
    assert_near(flown.truth.R_ws, R_ws, 1e-6)
    assert_near(flown.onboard_R_ws, R_ws, 1e-6)


def test_at_rest_the_specific_force_is_gravity_and_points_up(flown: Recording) -> None:
    still = flown.imu.t < synthetic.STILL_S
    acc_s = flown.imu.acc_s[still]
    assert_near(acc_s.norm(dim=1), torch.tensor(G_MPS2), 1e-4)
    up_w = torch.tensor([0.0, 0.0, G_MPS2])
    assert_near(world(flown.truth.R_ws[still], acc_s), up_w, 1e-4)


def test_signals_are_each_other_s_derivatives(flown: Recording) -> None:
    step_s = (flown.imu.t[2:] - flown.imu.t[:-2]).unsqueeze(1)
    truth = flown.truth
    turn = Rotation.from_matrix((truth.R_ws[:-2].mT @ truth.R_ws[2:]).numpy()).as_rotvec()
    assert_near(torch.from_numpy(turn) / step_s, flown.imu.gyr_s[1:-1].double(), 1e-3)
    assert_near((truth.p_w[2:] - truth.p_w[:-2]) / step_s, truth.v_w[1:-1].double(), 1e-3)
    force_w = world(truth.R_ws, flown.imu.acc_s)[1:-1].double()
    a_w = force_w - torch.tensor([0.0, 0.0, G_MPS2])
    assert_near((truth.v_w[2:] - truth.v_w[:-2]) / step_s, a_w, 1e-2)


# Rows that were never measured


@pytest.mark.parametrize("tail", [0, 25, 550])
def test_an_extrapolated_tail_is_cut_off(tail: int, tmp_path: Path) -> None:
    rows = 1100
    flight, recording = one_flight(tmp_path, content(rows, tail=tail))
    assert flight.rows == rows
    assert flight.valid_begin == 0
    assert abs(flight.valid_end - (rows - tail)) <= 1
    assert flight.tail_s == pytest.approx(0.01 * tail, abs=0.0101)
    assert flight.filled < 0.01
    assert flight.duration_s == pytest.approx(recording.imu.t[-1].item(), abs=1e-9)
    assert len(recording.imu) == len(recording.truth) == flight.valid_end
    assert recording.onboard_R_ws is not None
    assert len(recording.onboard_R_ws) == flight.valid_end


def test_a_straight_line_at_the_start_is_cut_off(tmp_path: Path) -> None:
    flight, recording = one_flight(tmp_path, content(lead=30, tail=40))
    begin = flight.valid_begin
    assert abs(begin - 30) <= 1
    assert abs(flight.valid_end - (ROWS - 40)) <= 1
    assert recording.imu.t[0] == 0
    m = synthetic.motion(ROWS)
    assert_near(recording.imu.gyr_s[0], torch.from_numpy(m.gyr_s[begin]).float(), 1e-5)
    assert_near(recording.truth.R_ws[0], torch.from_numpy(m.R_ws[begin]).float(), 1e-5)


def test_filled_rows_inside_are_kept_and_counted(tmp_path: Path) -> None:
    data = synthetic.table(ROWS)
    gap = slice(300, 371)
    for column in range(synthetic.FIRST_IMU, synthetic.LAST_IMU + 1):
        data[gap, column] = np.linspace(data[300, column], data[370, column], 71)
    flight, recording = one_flight(tmp_path, synthetic.csv(data))
    assert flight.filled == pytest.approx(0.1, abs=0.003)
    assert len(recording.imu) >= ROWS - 1


def test_a_stub_is_listed_nowhere_and_refused(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path / "B7_oval_slow_rep1.csv", content(211))
    synthetic.write(tmp_path / f"{NAME}.csv", content())
    assert nanobench.list_sequences(tmp_path) == [NAME]
    assert [f.is_too_short for f in nanobench.inspect(tmp_path)] == [False, True]
    message = r"211 rows, 2\.1 s of them measured; expected a flight of at least 5 s"
    with pytest.raises(DataError, match=message) as refused:
        nanobench.read(tmp_path, "B7_oval_slow_rep1")
    assert refused.value.path == path


def test_a_long_file_with_too_few_measured_rows_is_a_stub(tmp_path: Path) -> None:
    synthetic.write(tmp_path / f"{NAME}.csv", content(tail=300))
    assert nanobench.list_sequences(tmp_path) == []
    with pytest.raises(DataError, match=r"700 rows, (3\.9|4\.0) s of them measured"):
        nanobench.read(tmp_path, NAME)


def test_a_constant_imu_measured_nothing(tmp_path: Path) -> None:
    data = synthetic.table(ROWS)
    data[:, synthetic.FIRST_IMU : synthetic.LAST_IMU + 1] = 0.3
    synthetic.write(tmp_path / f"{NAME}.csv", synthetic.csv(data))
    (flight,) = nanobench.inspect(tmp_path)
    assert flight.is_too_short
    assert flight.filled == 1
    assert flight.tail_s == pytest.approx(0.01 * (ROWS - 1), abs=1e-6)
    with pytest.raises(DataError, match=r"700 rows, 0\.0 s of them measured"):
        nanobench.read(tmp_path, NAME)


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_a_few_rows_are_a_stub(rows: int, tmp_path: Path) -> None:
    synthetic.write(tmp_path / f"{NAME}.csv", content(rows))
    assert nanobench.list_sequences(tmp_path) == []
    with pytest.raises(DataError, match=rf"{rows} rows, 0\.0 s of them measured"):
        nanobench.read(tmp_path, NAME)


# Files and folders


def same(first: Recording, second: Recording) -> bool:
    pairs = (
        (first.imu.t, second.imu.t),
        (first.imu.acc_s, second.imu.acc_s),
        (first.imu.gyr_s, second.imu.gyr_s),
        (first.truth.R_ws, second.truth.R_ws),
        (first.truth.p_w, second.truth.p_w),
        (first.truth.v_w, second.truth.v_w),
    )
    return all(torch.equal(a, b) for a, b in pairs)


def test_packing_changes_nothing(tmp_path: Path) -> None:
    plain = synthetic.write(tmp_path / "plain" / f"{NAME}.csv", content())
    packed = synthetic.write(tmp_path / "packed" / f"{NAME}.csv.gz", content(), metadata=True)
    assert packed.stat().st_size < plain.stat().st_size
    (first,), (second,) = nanobench.inspect(plain.parent), nanobench.inspect(packed.parent)
    assert first.sha256 == second.sha256
    assert first.name == second.name == NAME
    assert same(nanobench.read(plain.parent, NAME), nanobench.read(packed.parent, NAME))


def test_the_content_tells_whether_a_file_is_packed(flown: Recording, tmp_path: Path) -> None:
    """Browsers unpack a download and keep its name; people rename."""
    packed_as_csv = tmp_path / "packed" / f"{NAME}.csv"
    synthetic.write(packed_as_csv, gzip.compress(content()))
    plain_as_gz = synthetic.write(tmp_path / "plain" / f"{NAME}.csv.gz", b"")
    plain_as_gz.write_bytes(content())
    for path in (packed_as_csv, plain_as_gz):
        assert same(nanobench.read(path.parent, NAME), flown)


def test_only_flights_are_listed(tmp_path: Path) -> None:
    synthetic.write(tmp_path / "deep" / "er" / f"{NAME}.csv", content(), metadata=True)
    synthetic.write(tmp_path / "qa.csv", b"stem,rows\n")
    synthetic.write(tmp_path / f"{NAME}.csv.part", b"half a download")
    (tmp_path / "B3_figure8_rep1.csv").mkdir()
    assert nanobench.list_sequences(tmp_path) == [NAME]
    assert nanobench.read(tmp_path, NAME).name == NAME


def test_flights_are_listed_in_natural_order(tmp_path: Path) -> None:
    names = ["B2_circle_rep2", "B2_circle_rep10", "B10_lissajous_rep1"]
    for i, name in enumerate(reversed(names)):
        synthetic.write(tmp_path / f"{name}.csv", content(start_s=i))
    assert nanobench.list_sequences(tmp_path) == names


def test_copies_are_one_flight_under_the_lowest_number(tmp_path: Path) -> None:
    first, second = content(), content(start_s=100)
    for name, data in {
        "B9_trefoil_rep10.csv": first,
        "B9_trefoil_rep11.csv.gz": first,
        "B9_trefoil_rep2.csv.gz": first,
        "B9_trefoil_rep3.csv": second,
    }.items():
        synthetic.write(tmp_path / name, data, metadata=True)
    flights = {flight.name: flight for flight in nanobench.inspect(tmp_path)}
    assert nanobench.list_sequences(tmp_path) == ["B9_trefoil_rep2", "B9_trefoil_rep3"]
    assert flights["B9_trefoil_rep2"].copies == ("B9_trefoil_rep10", "B9_trefoil_rep11")
    assert flights["B9_trefoil_rep2"].path == tmp_path / "B9_trefoil_rep2.csv.gz"
    assert flights["B9_trefoil_rep3"].copies == ()


def test_a_scan_gives_what_reading_gives(tmp_path: Path) -> None:
    synthetic.write(tmp_path / f"{NAME}.csv", content())
    synthetic.write(tmp_path / "B7_oval_rep1.csv", content(100))
    (_, recording), (_, nothing) = nanobench.scan(tmp_path)
    assert recording is not None
    assert same(recording, nanobench.read(tmp_path, NAME))
    assert nothing is None


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    """A clone of the public repository holds excerpts under the names of whole flights."""
    whole = synthetic.write(tmp_path / "datasets" / f"{NAME}.csv", content())
    excerpt = synthetic.write(tmp_path / "benchmarks" / f"{NAME}.csv.gz", content(600))
    message = str(refusal(tmp_path))
    assert str(whole) in message
    assert str(excerpt) in message
    assert f"found flight {NAME!r}" in message
    assert "expected one file of each name" in message
    assert nanobench.list_sequences(whole.parent) == [NAME]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    root = tmp_path / "flights"
    assert str(refusal(root)).startswith(f"{root}: no such folder, or not a readable one; expected")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path / f"{NAME}.csv", content())
    assert str(refusal(path)).startswith(f"{path}: no such folder, or not a readable one; expected")


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    root = tmp_path / "flights"
    synthetic.write(root / f"{NAME}.csv", content())
    root.chmod(0)
    if os.access(root, os.R_OK):
        pytest.skip("an administrator may read everything")
    for place in (root, root / "deeper"):
        assert "not a readable one" in str(refusal(place))
    root.chmod(0o700)


@pytest.mark.parametrize("others", [[], ["qa.csv", "notes.txt"]], ids=["empty", "other files"])
def test_a_folder_without_flights_is_named(others: list[str], tmp_path: Path) -> None:
    for name in others:
        synthetic.write(tmp_path / name, b"x")
    (tmp_path / f"{NAME}.csv").mkdir()
    message = f"{tmp_path}: no flights; expected files like B2_circle_fast_rep1.csv[.gz]"
    assert str(refusal(tmp_path)) == message


def test_an_unknown_flight_is_named(tmp_path: Path) -> None:
    synthetic.write(tmp_path / f"{NAME}.csv", content())
    with pytest.raises(DataError, match=r"no flight 'B3_rep1'; expected B3_rep1\.csv or \.csv\.gz"):
        nanobench.read(tmp_path, "B3_rep1")


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = synthetic.write(tmp_path / f"{NAME}.csv", content())

    def deny(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", deny)
    expected = f"{path}: cannot be read (Permission denied); expected a readable file"
    assert str(refusal(tmp_path)) == expected


def test_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.csv"
    path.symlink_to(tmp_path / "gone")
    assert str(refusal(tmp_path)) == f"{path}: no such file"


# Damaged files: what is done to the content, the line, what is found, what is expected


def with_cell(line: int, column: str, text: str) -> Damage:
    def damage(good: bytes) -> bytes:
        lines = good.decode().split("\n")
        cells = lines[line - 1].split(",")
        cells[synthetic.COLUMNS.index(column)] = text
        return "\n".join([*lines[: line - 1], ",".join(cells), *lines[line:]]).encode()

    return damage


def with_line(line: int, change: Callable[[str], list[str]]) -> Damage:
    def damage(good: bytes) -> bytes:
        lines = good.decode().split("\n")
        return "\n".join([*lines[: line - 1], *change(lines[line - 1]), *lines[line:]]).encode()

    return damage


def without_columns(*columns: str) -> Damage:
    keep = [i for i, name in enumerate(synthetic.COLUMNS) if name not in columns]

    def damage(good: bytes) -> bytes:
        rows = [line.split(",") for line in good.decode().splitlines()]
        return "\n".join(",".join(row[i] for i in keep) for row in rows).encode()

    return damage


def with_column(column: str, text: str) -> Damage:
    index = synthetic.COLUMNS.index(column)

    def damage(good: bytes) -> bytes:
        header, *rows = (line.split(",") for line in good.decode().splitlines())
        rows = [[*row[:index], text, *row[index + 1 :]] for row in rows]
        return "\n".join(",".join(row) for row in (header, *rows)).encode()

    return damage


def replaced_by(other: bytes) -> Damage:
    return lambda _: other


def in_turn(*steps: Damage) -> Damage:
    return lambda good: reduce(lambda content, step: step(content), steps, good)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"
DAMAGED: dict[str, tuple[Damage, int | None, str, str]] = {
    "empty": (replaced_by(b""), None, "empty file", "a header with t, px, py, pz"),
    "blank": (replaced_by(b" \n\n\r\n"), None, "empty file", "a header with t, px, py, pz"),
    "header only": (
        lambda good: good[: good.index(b"\n") + 1],
        None,
        "found a header and no rows",
        "at least one row",
    ),
    "no header": (
        lambda good: good[good.index(b"\n") + 1 :],
        1,
        "missing column(s) t, px,",
        "t, px, py, pz",
    ),
    "blank first line": (lambda good: b"\n" + good, 1, "found 1: ''", "missing column(s) t, px,"),
    "missing columns": (
        without_columns("qw", "imu_acc_y"),
        1,
        "found 50: 't,px,",
        "missing column(s) qw, imu_acc_y",
    ),
    "git pointer": (
        replaced_by(POINTER),
        1,
        "found 1: 'version https://git-lfs",
        "missing column(s) t, px,",
    ),
    "semicolons": (lambda g: g.replace(b",", b";"), 1, "separated by ';'", "expected ','"),
    "tabs": (lambda g: g.replace(b",", b"\t"), 1, "separated by a tab", "expected ','"),
    "semicolons in rows": (
        with_line(30, lambda row: [row.replace(",", ";")]),
        30,
        "found 1 value(s)",
        "expected 52",
    ),
    "backward time": (
        with_cell(40, "t", "1772426634.000000000"),
        40,
        "time goes from 1772426634.510749 to 1772426634.000000 s",
        "expected it to rise",
    ),
    "repeated time": (
        with_cell(41, "t", "1772426634.520748739"),
        41,
        "time goes from 1772426634.520749 to 1772426634.520749 s",
        "expected it to rise",
    ),
    "rows twice": (
        with_line(60, lambda row: [row, row]),
        61,
        "time goes from",
        "expected it to rise",
    ),
    "NaN column": (
        with_column("imu_gyro_z", "nan"),
        2,
        "column 'imu_gyro_z' is nan",
        "expected a number (700 of 700 rows)",
    ),
    "one NaN": (
        with_cell(123, "pz", "NaN"),
        123,
        "column 'pz' is nan",
        "expected a number (1 of 700 rows)",
    ),
    "infinite": (with_cell(9, "qx", "-inf"), 9, "column 'qx' is -inf", "expected a number"),
    "absurd": (with_cell(9, "vx", "1e200"), 9, "column 'vx' is 1e+200", "expected a number"),
    "text": (with_cell(77, "vy", "lost"), 77, "column 'vy' is 'lost'", "expected a number"),
    "no value": (with_cell(701, "t", ""), 701, "column 't' is ''", "expected a number"),
    "header again": (
        with_line(90, lambda row: [synthetic.HEADER, row]),
        90,
        "column 't' is 't'",
        "expected a number",
    ),
    "short row": (
        with_line(55, lambda row: [",".join(row.split(",")[:20])]),
        55,
        "found 20 value(s)",
        "expected 52",
    ),
    "cut off in an unused column": (lambda good: good[:-30], 701, "value(s)", "expected 52"),
    "lost comma": (
        with_line(56, lambda row: [row.replace("0.000000000,0.000000000", "0.000000000", 1)]),
        56,
        "found 51 value(s)",
        "expected 52",
    ),
    "long row": (with_line(57, lambda row: [f"{row},0"]), 57, "found 53 value(s)", "expected 52"),
    "blank line": (with_line(58, lambda row: ["", row]), 58, "found 0 value(s)", "expected 52"),
    "no Vicon attitude": (
        in_turn(*(with_cell(50, name, "0") for name in ("qx", "qy", "qz", "qw"))),
        50,
        "quaternion qx, qy, qz, qw has length 0.000",
        "expected 1",
    ),
    "wrong onboard attitude": (
        with_cell(51, "att_stateEstimate_qw", "3"),
        51,
        "quaternion att_stateEstimate_qx,",
        "expected 1",
    ),
    "packed, cut off": (
        lambda good: gzip.compress(good)[:-500],
        None,
        "damaged gzip file",
        "expected a whole one",
    ),
    "packed, cut off at once": (
        lambda good: gzip.compress(good)[:5],
        None,
        "damaged gzip file",
        "expected a whole one",
    ),
    "packed, one byte wrong": (
        lambda good: gzip.compress(good)[:-6] + b"\0" + gzip.compress(good)[-5:],
        None,
        "damaged gzip file",
        "expected a whole one",
    ),
    "packed, then more": (
        lambda good: gzip.compress(good) + b"more",
        None,
        "damaged gzip file",
        "expected a whole one",
    ),
    "binary": (
        replaced_by(np.random.default_rng(0).bytes(5000)),
        None,
        "not a text file",
        "expected UTF-8",
    ),
    "zeros": (replaced_by(bytes(5000)), 1, "found 1: '\\x00", "missing column(s) t, px"),
    "UTF-16": (
        lambda good: good.decode().encode("utf-16"),
        None,
        "not a text file",
        "expected UTF-8",
    ),
}


@pytest.mark.parametrize("name", [f"{NAME}.csv", f"{NAME}.csv.gz"], ids=["csv", "gz"])
@pytest.mark.parametrize(("damage", "line", "found", "expected"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused_with_its_place_and_the_reason(
    damage: Damage, line: int | None, found: str, expected: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(damage(content()))
    error = refusal(tmp_path)
    place = f"{path}: " if line is None else f"{path}, line {line}: "
    assert str(error).startswith(place)
    assert (error.path, error.line) == (path, line)
    assert found in str(error)
    assert expected in str(error)


def test_attitudes_of_a_tail_are_not_judged(tmp_path: Path) -> None:
    """A quaternion that a straight line carries far away is no fault of the measured rows."""
    data = synthetic.table(ROWS, tail=60)
    data[ROWS - 40 :, synthetic.COLUMNS.index("att_stateEstimate_qw")] = 50
    flight, _ = one_flight(tmp_path, synthetic.csv(data))
    assert flight.valid_end < ROWS - 40


def test_columns_that_are_not_used_may_hold_anything(tmp_path: Path) -> None:
    _, recording = one_flight(tmp_path, with_column("pwr_pm_vbat", "nan")(content()))
    assert len(recording.imu) >= ROWS - 1


@given(damage=mutations())
def test_a_mutated_file_is_read_or_refused(
    damage: Damage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("mutated")
    path = synthetic.write(root / f"{NAME}.csv", damage(content(560)))
    result = attempt(lambda: nanobench.read(root, NAME))
    if isinstance(result, DataError):
        assert str(result).startswith(str(path))
    else:
        assert torch.isfinite(result.imu.acc_s).all()
        assert torch.isfinite(result.truth.R_ws).all()


@given(value=st.floats(width=64), line=st.integers(2, 561))
@pytest.mark.parametrize("column", ["t", "qw", "imu_acc_x", "imu_gyro_z", "vx"])
def test_a_cell_of_any_value_is_read_or_refused(
    value: float, line: int, column: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("cell")
    synthetic.write(root / f"{NAME}.csv", with_cell(line, column, repr(value))(content(560)))
    result = attempt(lambda: nanobench.read(root, NAME))
    if not isinstance(result, DataError):
        for signal in (result.imu.acc_s, result.imu.gyr_s, result.truth.R_ws, result.truth.v_w):
            assert torch.isfinite(signal).all()


# Real flights


def test_real_flights_agree_with_an_independent_inspection(
    nanobench_flights: Flights, nanobench_qa: Qa
) -> None:
    assert len(nanobench_flights) == 72
    assert set(nanobench_flights) == set(nanobench_qa)
    for name, (flight, _) in nanobench_flights.items():
        qa = nanobench_qa[name]
        assert flight.sha256 == qa["sha256"], name
        assert flight.rows == int(qa["rows"]), name
        assert flight.copies == (), name
        assert abs(flight.valid_begin - int(qa["valid_row_begin"])) <= 2, name
        assert abs(flight.valid_end - int(qa["valid_row_end"])) <= 2, name
        assert flight.tail_s == pytest.approx(float(qa["extrapolated_tail_s"]), abs=0.03), name
        assert flight.filled == pytest.approx(float(qa["imu_filled_row_frac"]), abs=0.002), name


def test_the_real_stub_is_refused(
    nanobench_root: Path, nanobench_flights: Flights, nanobench_qa: Qa
) -> None:
    stubs = [name for name, (_, recording) in nanobench_flights.items() if recording is None]
    assert stubs == ["B7_oval_slow_rep1"]
    with pytest.raises(DataError, match=r"211 rows, 2\.1 s of them measured"):
        nanobench.read(nanobench_root, "B7_oval_slow_rep1")


def test_real_flights_begin_at_rest_with_gravity_up(nanobench_flights: Flights) -> None:
    for name, (_, recording) in nanobench_flights.items():
        if recording is not None:
            still = recording.imu.t < 1.5
            acc_w = world(recording.truth.R_ws[still], recording.imu.acc_s[still]).mean(0)
            assert acc_w[:2].norm() < 1, name
            assert acc_w[2] == pytest.approx(G_MPS2, abs=0.1), name


def test_real_truth_is_consistent(nanobench_flights: Flights) -> None:
    """Velocity is that of the position, and two attitudes of different origin agree."""
    for name, (_, recording) in nanobench_flights.items():
        if recording is None:
            continue
        truth, onboard_R_ws = recording.truth, recording.onboard_R_ws
        step_s = (truth.t[2:] - truth.t[:-2]).unsqueeze(1)
        v_w = (truth.p_w[2:] - truth.p_w[:-2]) / step_s
        assert (v_w - truth.v_w[1:-1]).square().sum(1).mean().sqrt() < 0.05, name
        assert onboard_R_ws is not None
        turn = Rotation.from_matrix((truth.R_ws.mT @ onboard_R_ws).numpy()).magnitude()
        assert np.rad2deg(np.median(turn)) < 10, name
