"""Parsed recordings in one file, so that a second start reads no text."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ginio.core.recording import ImuSequence, Recording, Trajectory

FORMAT = 1
Read = Callable[[], Sequence[tuple[str, Recording]]]


def cache_folder() -> Path:
    """Where parsed data is kept: $GINIO_CACHE, else the user's cache folder."""
    chosen = os.environ.get("GINIO_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ginio"


def cached(root: Path, read: Read) -> list[tuple[str, Recording]]:
    """What ``read`` gives for a folder: from the cache if no file changed since.

    Recordings come with the SHA-256 of their content. A cache that cannot be read or written is
    done without.
    """
    path = cache_folder() / f"{fingerprint(root)}.safetensors"
    try:
        return _load(path)
    except (OSError, SafetensorError, KeyError, ValueError):
        recordings = list(read())
    with suppress(OSError, SafetensorError):
        _store(path, recordings)
    return recordings


def fingerprint(root: Path) -> str:
    """Changes when a file under a folder is added, removed, resized or rewritten."""
    found = [
        (str(path.relative_to(root)), stat.st_size, stat.st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file() and (stat := path.stat())
    ]
    return hashlib.sha256(json.dumps([FORMAT, str(root.resolve()), found]).encode()).hexdigest()


def _store(path: Path, recordings: Sequence[tuple[str, Recording]]) -> None:
    tensors: dict[str, torch.Tensor] = {}
    for i, (_, r) in enumerate(recordings):
        tensors |= {
            f"{i}.imu.t": r.imu.t,
            f"{i}.acc_s": r.imu.acc_s,
            f"{i}.gyr_s": r.imu.gyr_s,
            f"{i}.truth.t": r.truth.t,
            f"{i}.R_ws": r.truth.R_ws,
            f"{i}.p_w": r.truth.p_w,
            f"{i}.v_w": r.truth.v_w,
        }
        if r.onboard_R_ws is not None:
            tensors[f"{i}.onboard_R_ws"] = r.onboard_R_ws
    # A file holds no memory twice, and recordings may share some, as both clocks do.
    copies = {k: v.clone(memory_format=torch.contiguous_format) for k, v in tensors.items()}
    index = json.dumps([(content, r.name) for content, r in recordings])
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may write at a time, each a file of its own.
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        save_file(copies, partial, metadata={"index": index})
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _load(path: Path) -> list[tuple[str, Recording]]:
    with safe_open(path, framework="pt") as file:
        index = json.loads((file.metadata() or {})["index"])
        keys = set(file.keys())
        tensors = {key: file.get_tensor(key) for key in keys}
    return [
        (
            content,
            Recording(
                name,
                ImuSequence(tensors[f"{i}.imu.t"], tensors[f"{i}.acc_s"], tensors[f"{i}.gyr_s"]),
                Trajectory(
                    tensors[f"{i}.truth.t"],
                    tensors[f"{i}.R_ws"],
                    tensors[f"{i}.p_w"],
                    tensors[f"{i}.v_w"],
                ),
                tensors.get(f"{i}.onboard_R_ws"),
            ),
        )
        for i, (content, name) in enumerate(index)
    ]
