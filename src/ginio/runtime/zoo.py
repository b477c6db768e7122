"""Trained networks that ship with the package, and run directories, by one function."""

from importlib.resources import as_file, files
from pathlib import Path

from ginio.runtime.checkpoint import CARD_FILE, Run, load_run

_WEIGHTS = files("ginio") / "weights"


def shipped() -> list[str]:
    """Names of the trained networks in this installation."""
    if not _WEIGHTS.is_dir():
        return []
    return sorted(entry.name for entry in _WEIGHTS.iterdir() if (entry / CARD_FILE).is_file())


def load(name: str | Path) -> Run:
    """A trained network by its name, or from the path of a run directory. Works offline.

    Raises:
        ValueError: there is no such name or folder.
        CheckpointError: the folder is no run directory, or damaged.
    """
    if name in shipped():
        with as_file(_WEIGHTS / str(name)) as directory:
            return load_run(directory)
    if Path(name).is_dir():
        return load_run(Path(name))
    raise ValueError(
        f"no trained network {str(name)!r}; expected a run directory or one of "
        f"{', '.join(shipped())}"
    )
