"""NanoBench: nano-quadrotor flights with onboard IMU and Vicon truth (Ullah & Baca 2026).

Files are ``*.csv`` or ``*.csv.gz`` anywhere under the root. In a clone of the public repository the
root is ``datasets/dataset``: other folders hold excerpts of the same flights under the same names.
Three things the publisher does not say are found here from the data itself:

- Every onboard channel was interpolated to the Vicon clock by straight lines and *extrapolated*
  after the radio log ended. Such ends are collinear to the last row, and are cut off.
- Some flights were published two or three times under different repetition numbers. Files with
  the same content are one flight, kept under its lowest number.
- One file is two seconds on the ground.

Specific force is published in g.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Float64
from numpy import ndarray

from ginio.core.recording import ImuSequence, Recording, Trajectory
from ginio.data.table import Column, DataError, parse_columns, read_bytes
from ginio.geometry import so3
from ginio.geometry.frames import GRAVITY_MPS2

IMU = tuple(f"imu_{kind}_{axis}" for kind in ("acc", "gyro") for axis in "xyz")
VICON = ("px", "py", "pz", "qx", "qy", "qz", "qw", "vx", "vy", "vz")
ONBOARD = tuple(f"att_stateEstimate_q{axis}" for axis in "xyzw")
COLUMNS = ("t", *VICON, *IMU, *ONBOARD)

SHORTEST_FLIGHT_S = 5.0
# Slopes of neighbouring rows that differ by less than this part of them are one straight line.
COLLINEAR_RELATIVE = 1e-4
COLLINEAR_ABSOLUTE = 1e-6
# Interpolation shortens quaternions, by 0.004 at most in the public flights.
LONGEST_QUATERNION_ERROR = 0.1


@dataclass(frozen=True, slots=True)
class Flight:
    """One file of the dataset and what was found in it."""

    name: str
    path: Path
    sha256: str
    rows: int
    valid_begin: int
    valid_end: int
    tail_s: float
    """Seconds of extrapolated rows cut off the end."""
    filled: float
    """Part of the valid rows that lie on a straight line with both their neighbours."""
    duration_s: float
    copies: tuple[str, ...] = ()
    """Other names under which the same bytes were published."""

    @property
    def is_too_short(self) -> bool:
        """Whether the valid rows are fewer than any flight has."""
        return self.duration_s < SHORTEST_FLIGHT_S


def list_sequences(root: Path) -> Sequence[str]:
    """Names of the flights worth reading: no copies, no stubs."""
    return [flight.name for flight in inspect(root) if not flight.is_too_short]


def inspect(root: Path) -> Sequence[Flight]:
    """What is in a folder, one entry for each different content, by name."""
    return [flight for flight, _ in scan(root)]


def files(root: Path) -> dict[str, Path]:
    """Data files by name, lower repetition numbers first."""
    if not os.access(root, os.R_OK | os.X_OK) or not root.is_dir():
        problem = "no such folder, or not a readable one; expected NanoBench's *.csv or *.csv.gz"
        raise DataError(root, problem)
    found: dict[str, Path] = {}
    for path in sorted(root.rglob("*_rep*.csv*")):
        if not path.name.endswith((".csv", ".csv.gz")) or path.is_dir():
            continue
        name = path.name.removesuffix(".gz").removesuffix(".csv")
        if name in found:
            problem = f"found flight {name!r} in {found[name]} too; expected one file of each name"
            raise DataError(path, problem)
        found[name] = path
    if not found:
        raise DataError(root, "no flights; expected files like B2_circle_fast_rep1.csv[.gz]")
    return dict(sorted(found.items(), key=lambda item: _natural(item[0])))


def content_sha256(path: Path) -> str:
    """What a split knows a flight by, found without parsing it."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def read(root: Path, sequence: str) -> Recording:
    """One flight, cropped to the rows that were measured.

    Raises:
        DataError: no such flight, a damaged file, or too few valid rows.
    """
    path = files(root).get(sequence)
    if path is None:
        raise DataError(root, f"no flight {sequence!r}; expected {sequence}.csv or .csv.gz")
    flight, recording = _parse(sequence, path, read_bytes(path))
    if recording is None:
        raise DataError(
            path,
            f"{flight.rows} rows, {flight.duration_s:.1f} s of them measured; expected a flight "
            f"of at least {SHORTEST_FLIGHT_S:.0f} s",
        )
    return recording


def scan(root: Path) -> Iterator[tuple[Flight, Recording | None]]:
    """Every different flight with its recording, or None in place of one too short to use."""
    paths = files(root)
    contents = {name: read_bytes(path) for name, path in paths.items()}
    names: dict[str, list[str]] = {}
    for name, content in contents.items():
        names.setdefault(hashlib.sha256(content).hexdigest(), []).append(name)
    for name, *copies in names.values():
        flight, recording = _parse(name, paths[name], contents[name], tuple(copies))
        yield flight, recording


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(d), "") if d else (0, s) for d, s in re.findall(r"(\d+)|(\D+)", name)]


def _parse(
    name: str, path: Path, content: bytes, copies: tuple[str, ...] = ()
) -> tuple[Flight, Recording | None]:
    column = parse_columns(path, content, COLUMNS)
    t = _seconds(path, column["t"])
    imu = np.stack([column[c] for c in IMU], axis=1)
    collinear = _collinear(t, imu)
    begin, end = _measured_rows(collinear)
    valid = slice(begin, end)
    duration = float(t[end - 1] - t[begin]) if end > begin else 0.0
    flight = Flight(
        name=name,
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        rows=len(t),
        valid_begin=begin,
        valid_end=end,
        tail_s=float(t[-1] - t[end - 1]) if end else float(t[-1]),
        filled=float(collinear[valid].mean()) if end > begin else 1.0,
        duration_s=duration,
        copies=copies,
    )
    return flight, None if flight.is_too_short else _recording(flight, column, t)


def _seconds(path: Path, clock: Column) -> Column:
    """Time since the first row, if it rises."""
    t = clock - clock[0]
    backward = np.flatnonzero(np.diff(t) <= 0)
    if len(backward):
        row = int(backward[0]) + 1
        problem = f"time goes from {clock[row - 1]:.6f} to {clock[row]:.6f} s; expected it to rise"
        raise DataError(path, problem, line=row + 2)
    return t


def _recording(flight: Flight, column: Mapping[str, Column], t: Column) -> Recording:
    valid = slice(flight.valid_begin, flight.valid_end)

    def tensor(names: Sequence[str]) -> Float64[torch.Tensor, "row axis"]:
        return torch.from_numpy(np.stack([column[name][valid] for name in names], axis=1))

    def attitude(names: Sequence[str]) -> Float[torch.Tensor, "row 3 3"]:
        q_ws_xyzw = tensor(names)
        length = q_ws_xyzw.norm(dim=1)
        wrong = ((length - 1).abs() > LONGEST_QUATERNION_ERROR).nonzero()
        if len(wrong):
            row = int(wrong[0])
            problem = f"quaternion {', '.join(names)} has length {length[row]:.3f}; expected 1"
            raise DataError(flight.path, problem, line=flight.valid_begin + row + 2)
        return so3.matrix_from_quaternion_xyzw(q_ws_xyzw).float()

    stamps = torch.from_numpy(t[valid] - t[flight.valid_begin])
    acc_s, gyr_s = GRAVITY_MPS2 * tensor(IMU[:3]), tensor(IMU[3:])
    imu = ImuSequence(stamps, acc_s.float(), gyr_s.float())
    truth = Trajectory(
        stamps, attitude(VICON[3:7]), tensor(VICON[:3]).float(), tensor(VICON[7:]).float()
    )
    return Recording(flight.name, imu, truth, onboard_R_ws=attitude(ONBOARD))


def _collinear(t: Float64[ndarray, " row"], imu: Float64[ndarray, "row channel"]) -> np.ndarray:
    """Whether each row lies on a straight line with the two after it, in every channel."""
    slope = np.diff(imu, axis=0) / np.diff(t)[:, None]
    change = np.abs(np.diff(slope, axis=0))
    size = np.abs(slope[1:]) + np.abs(slope[:-1])
    straight = (change <= COLLINEAR_RELATIVE * size + COLLINEAR_ABSOLUTE).all(axis=1)
    return np.append(straight, [False, False])


def _measured_rows(collinear: np.ndarray) -> tuple[int, int]:
    """Rows left when a straight line at the start and one at the end are cut off."""
    inner = collinear[:-2]
    bent = np.flatnonzero(~inner)
    if not len(bent):
        return 0, 0
    begin, last_bent = int(bent[0]), int(bent[-1])
    return (begin + 1 if begin else 0), last_bent + 2
