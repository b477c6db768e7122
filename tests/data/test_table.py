import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mutations import Damage, attempt, mutations

from ginio.data.table import DataError, parse_columns, read_bytes

PATH = Path("flight.csv")
WANTED = ("t", "x", "y")
GOOD = b"t,x,y,note\n0.0,1.5,-2e-3,a\n0.5,+2,3.,b\n1.0,.25,4,c\n"
TABLE = {"t": [0, 0.5, 1], "x": [1.5, 2, 0.25], "y": [-2e-3, 3, 4]}


def parsed(content: bytes, wanted: tuple[str, ...] = WANTED) -> dict[str, list[float]]:
    return {name: list(column) for name, column in parse_columns(PATH, content, wanted).items()}


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.rstrip(),
        GOOD + b"\n \r\n\n",
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"\n", b"\r"),
        GOOD.replace(b",", b" ,\t "),
        GOOD.replace(b"note", "Notiz für später".encode()),
        b"y,note,t,x\n-0.002,,0,1.5\n3,#,.5,2\n4,',1,0.25\n",
    ],
    ids=[
        "plain",
        "no last line end",
        "blank lines at the end",
        "byte order mark",
        "Windows",
        "old Mac",
        "spaces",
        "accents",
        "another order",
    ],
)
def test_one_table_may_be_written_in_many_ways(content: bytes) -> None:
    assert parsed(content) == TABLE


def test_columns_come_as_float64_in_the_order_wanted() -> None:
    columns = parse_columns(PATH, GOOD, ("y", "t"))
    assert list(columns) == ["y", "t"]
    assert all(column.dtype == np.float64 and column.shape == (3,) for column in columns.values())


def test_one_row_and_one_column_are_a_table() -> None:
    assert parsed(b"t\n7", ("t",)) == {"t": [7]}


def test_long_numbers_keep_their_digits() -> None:
    """A Unix time needs every bit of a float64."""
    assert parsed(b"t\n1772426634.140748739\n", ("t",)) == {"t": [1772426634.140748739]}


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"t,x,t,y\n1,2,3,4\n", 1, "column(s) t found more than once; expected each once"),
        (b"t|x|y\n1|2|3\n", 1, "columns are separated by '|'; expected ','"),
        (b"t x y\n1 2 3\n", 1, "columns are separated by a space; expected ','"),
        (b"a; t; x\n1; 2; 3\n", 1, "columns are separated by ';'; expected ','"),
        (b"t,X,y\n1,2,3\n", 1, "missing column(s) x; found 3: 't,X,y'"),
        (b"t,x,y\n\n1,2,3\n", 2, "found 0 value(s); expected 3"),
        (b"t,x,y\n1,2,3\n1,2\n", 3, "found 2 value(s); expected 3"),
        (b"t,x,y\r\n1,2,3\r\n1,2,3,4\r\n", 3, "found 4 value(s); expected 3"),
        (b"t,x,y\n1,2,3\n4,1_0,6\n", 3, "column 'x' is '1_0'; expected a number"),
        (b"t,x,y\n1,2,3\n4, ,6\n", 3, "column 'x' is ''; expected a number"),
        (b"t,x,y\n1,2,3\n4,5,1e999\n", 3, "column 'y' is inf; expected a number (1 of 2 rows)"),
        (b"t,x,y\n1,2,1e31\n", 2, "column 'y' is 1e+31; expected a number (1 of 1 rows)"),
        (b"t,x,y\n1,2,3\nnan,5,nan\n", 3, "column 't' is nan; expected a number (1 of 2 rows)"),
        ("t,x,y\n1,2,٣\n".encode(), 2, "column 'y' is '٣'; expected a number"),
        (b"t,x,y\n1,2," + 99 * b"z", 2, f"column 'y' is '{40 * 'z'}'; expected a number"),
    ],
)
def test_a_fault_is_described_with_its_line(content: bytes, line: int, message: str) -> None:
    with pytest.raises(DataError) as error:
        parsed(content)
    assert str(error.value) == f"{PATH}, line {line}: {message}"
    assert (error.value.path, error.value.line) == (PATH, line)


def test_line_numbers_are_those_of_an_editor() -> None:
    rows = [b"1,2,3"] * 60_000
    rows[55_000] = b"1,2,oops"
    with pytest.raises(DataError, match="line 55002: column 'y' is 'oops'"):
        parsed(b"\n".join([b"t,x,y", *rows]))


def test_content_is_read_plain_or_packed(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD)
    for name in ("a.csv", "a.csv.gz"):
        for content in (GOOD, packed, packed[:0]):
            path = tmp_path / name
            path.write_bytes(content)
            assert read_bytes(path) == (GOOD if content else b"")


def test_a_file_packed_in_parts_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(GOOD[:20]) + gzip.compress(GOOD[20:]))
    assert read_bytes(path) == GOOD


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        read_bytes(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}: cannot be read (")
    assert "expected a readable file" in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gone.csv.gz"
    with pytest.raises(DataError, match=r"gone\.csv\.gz: no such file"):
        read_bytes(path)


def check_columns_or_refusal(content: bytes) -> None:
    result = attempt(lambda: parse_columns(PATH, content, WANTED))
    if isinstance(result, DataError):
        assert str(result).startswith(f"{PATH}")
    else:
        table = np.stack([result[name] for name in WANTED])
        assert table.size
        assert np.isfinite(table).all()


@given(content=st.binary(max_size=200))
@example(content=b"")
@example(content=b"\xef\xbb\xbf")
@example(content=b"\x1f\x8b")
def test_arbitrary_bytes_are_read_or_refused(content: bytes) -> None:
    check_columns_or_refusal(content)


@given(rows=st.text(alphabet="0123456789.,-+eEnaif_ \t\r\n\"'#;x\x00\x1c\x85\u2028", max_size=60))
def test_arbitrary_rows_are_read_or_refused(rows: str) -> None:
    check_columns_or_refusal(f"t,x,y\n{rows}".encode())


@given(damage=mutations())
def test_a_mutated_table_is_read_or_refused(damage: Damage) -> None:
    check_columns_or_refusal(damage(GOOD))


@given(damage=mutations())
def test_a_mutated_packed_file_is_read_or_refused(
    damage: Damage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("packed") / "a.csv.gz"
    path.write_bytes(damage(gzip.compress(GOOD, mtime=0)))
    result = attempt(lambda: read_bytes(path))
    if isinstance(result, DataError):
        assert str(result).startswith(f"{path}: damaged gzip file")
    else:
        check_columns_or_refusal(result)
