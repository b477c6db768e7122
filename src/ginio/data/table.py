"""Columns of a comma-separated file, plain or gzipped, or an error a person can act on."""

import gzip
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

Column = Float64[ndarray, " row"]
_GZIP_MAGIC = b"\x1f\x8b"
_OTHER_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", " ": "a space"}
# Far beyond any measurement, and still a float32 after a change of units.
_LARGEST = 1e30


class DataError(ValueError):
    """A file that cannot be used: which one, where, what was found and what was expected."""

    def __init__(self, path: Path, problem: str, *, line: int | None = None) -> None:
        place = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {problem}")
        self.path = path
        self.line = line


def read_bytes(path: Path) -> bytes:
    """A file's content, unpacked if it is gzipped, whatever its name."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(path, f"damaged gzip file ({error}); expected a whole one") from error
    except FileNotFoundError:
        raise DataError(path, "no such file") from None
    except OSError as error:
        problem = f"cannot be read ({error.strerror}); expected a readable file"
        raise DataError(path, problem) from error


def parse_columns(path: Path, content: bytes, wanted: Sequence[str]) -> Mapping[str, Column]:
    """The wanted columns of a file's content, as float64.

    Args:
        path: where the content came from, for messages.
        content: header line and comma-separated rows.
        wanted: column names; the order in the file does not matter.

    Raises:
        DataError: no rows, missing or repeated columns, another separator, a row of another
            length than the header, a cell that is no number, or a value that is not finite.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"not a text file ({error.reason} at byte {error.start}); expected UTF-8"
        raise DataError(path, problem) from error
    header, *rows = re.split(r"\r\n?|\n", text.rstrip())
    if not header and not rows:
        raise DataError(path, f"empty file; expected a header with {', '.join(wanted[:4])}, ...")
    names = _column_names(path, header, wanted)
    if not rows:
        raise DataError(path, "found a header and no rows; expected at least one row of data")
    _check_lengths(path, rows, len(names))
    table = _parse_rows(path, rows, names, wanted)
    invalid = np.argwhere(~(np.abs(table) < _LARGEST))
    if len(invalid):
        row, column = invalid[0]
        amount = f"{len(np.unique(invalid[:, 0]))} of {len(table)} rows"
        problem = f"column {wanted[column]!r} is {table[row, column]}; expected a number ({amount})"
        raise DataError(path, problem, line=int(row) + 2)
    return {name: table[:, i] for i, name in enumerate(wanted)}


def _column_names(path: Path, header: str, wanted: Sequence[str]) -> list[str]:
    names = [name.strip() for name in header.split(",")]
    missing = [name for name in wanted if name not in names]
    for separator, label in _OTHER_SEPARATORS.items():
        others = {name.strip() for name in header.split(separator)}
        if missing and len(names) == 1 and others & set(wanted):
            raise DataError(path, f"columns are separated by {label}; expected ','", line=1)
    if missing:
        problem = f"missing column(s) {', '.join(missing)}; found {len(names)}: {header[:200]!r}"
        raise DataError(path, problem, line=1)
    repeated = [name for name in wanted if names.count(name) > 1]
    if repeated:
        problem = f"column(s) {', '.join(repeated)} found more than once; expected each once"
        raise DataError(path, problem, line=1)
    return names


def _check_lengths(path: Path, rows: Sequence[str], expected: int) -> None:
    """Refuse a row with a value too few or too many, in which columns may have shifted."""
    for line, row in enumerate(rows, start=2):
        found = row.count(",") + 1 if row.strip() else 0
        if found != expected:
            raise DataError(path, f"found {found} value(s); expected {expected}", line=line)


def _parse_rows(
    path: Path, rows: Sequence[str], names: list[str], wanted: Sequence[str]
) -> Float64[ndarray, "row column"]:
    index = [names.index(name) for name in wanted]
    try:
        return np.loadtxt(rows, delimiter=",", usecols=index, ndmin=2, comments=None)
    except ValueError as error:
        # NumPy counts rows from 0 and columns from 1.
        found = re.search(r"at row (\d+), column (\d+)", str(error))
        if found is None:
            raise DataError(path, f"{error}; expected numbers separated by ','") from error
        row, column = int(found[1]), int(found[2]) - 1
        cell = rows[row].split(",")[column].strip()[:40]
        problem = f"column {names[column]!r} is {cell!r}; expected a number"
        raise DataError(path, problem, line=row + 2) from error
