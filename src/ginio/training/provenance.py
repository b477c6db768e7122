"""What must be written down for a figure to be made again."""

import os
import platform
import subprocess
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

import torch

import ginio


def versions() -> dict[str, str]:
    """Of everything that decides a number."""
    return {
        "ginio": ginio.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def commit() -> str:
    """The commit of the source tree this package runs from, marked if it has changes.

    Where the tree was copied without its history, the environment variable GINIO_COMMIT tells it.
    """
    told = os.environ.get("GINIO_COMMIT")
    if told:
        return told
    here = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return found.stdout.strip() or "unknown"


def plain(config: Any) -> dict[str, Any]:
    """A config, which is a dataclass, as JSON can hold it."""
    return {key: _plain(value) for key, value in asdict(config).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
