"""Recordings on disk in the form in which NanoBench is published."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import torch
from jaxtyping import Float, Float64
from numpy import ndarray
from torch import Tensor

from ginio.core.recording import Recording
from ginio.data.readers.nanobench import COLUMNS
from ginio.geometry import so3
from ginio.geometry.frames import GRAVITY_MPS2

# Unix time at which a written flight begins, as recordings do not keep theirs: 2026-03-01 UTC.
BEGIN_UNIX_S = 1_772_323_200
# As published: nanoseconds, nanometres.
CELL = "%.9f"


def write_nanobench(recording: Recording, folder: Path, *, compressed: bool = True) -> Path:
    """Write a recording so that `ginio.data.readers.nanobench` reads it as ``<name>_rep1``.

    The columns that the reader needs are written, with the publisher's names and units: Unix time,
    specific force in g, quaternions scalar last. A small ``<name>_rep1_metadata.yaml`` lies beside
    the data. The same recording gives the same bytes.

    The reader takes exact straight lines at either end for made up and cuts them off. That is the
    last row of a noisy recording, and every rest of one without noise.

    Args:
        recording: with an onboard attitude, and the truth on the clock of the IMU.
        folder: made if it is not there.
        compressed: ``.csv.gz`` rather than ``.csv``.

    Returns:
        The file with the data.

    Raises:
        ValueError: no onboard attitude, or a truth with stamps of its own.
    """
    if recording.onboard_R_ws is None:
        raise ValueError(f"{recording.name} has no onboard attitude; expected one to write")
    if not torch.equal(recording.truth.t, recording.imu.t):
        raise ValueError(f"truth of {recording.name} has stamps of its own; expected the IMU's")
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{recording.name}_rep1"
    header, cells = ",".join(COLUMNS), ",".join([CELL] * len(COLUMNS))
    lines = [header, *(cells % tuple(row) for row in _table(recording, recording.onboard_R_ws))]
    content = ("\n".join(lines) + "\n").encode()
    path = folder / (f"{stem}.csv.gz" if compressed else f"{stem}.csv")
    path.write_bytes(gzip.compress(content, mtime=0) if compressed else content)
    (folder / f"{stem}_metadata.yaml").write_text(_metadata(recording), encoding="utf-8")
    return path


def _table(
    recording: Recording, onboard_R_ws: Float[Tensor, "time 3 3"]
) -> Float64[ndarray, "time column"]:
    """Rows in the order of the reader's ``COLUMNS``."""
    imu, truth = recording.imu, recording.truth
    columns = (
        BEGIN_UNIX_S + imu.t.unsqueeze(-1),
        truth.p_w.double(),
        so3.quaternion_xyzw_from_matrix(truth.R_ws.double()),
        truth.v_w.double(),
        imu.acc_s.double() / GRAVITY_MPS2,
        imu.gyr_s.double(),
        so3.quaternion_xyzw_from_matrix(onboard_R_ws.double()),
    )
    return torch.cat(columns, dim=-1).numpy()


def _metadata(recording: Recording) -> str:
    rows = len(recording.imu)
    begin = datetime.fromtimestamp(BEGIN_UNIX_S, UTC)
    return "\n".join(
        (
            "category: synthetic",
            f"trajectory_id: {recording.name}",
            "repetition: 1",
            f"recording_start_utc: {begin:%Y%m%dT%H%M%SZ}",
            "row_counts:",
            f"  attitude: {rows}",
            f"  imu: {rows}",
            f"  vicon: {rows}",
            "",
        )
    )
