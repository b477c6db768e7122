"""Run directories: a network's config as JSON and its weights as safetensors, never a pickle."""

import dataclasses
import json
from pathlib import Path
from typing import Any, get_args

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from ginio.models import AnyConfig

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
_CONFIGS: dict[str, type[AnyConfig]] = {c.__name__: c for c in get_args(AnyConfig)}


class CheckpointError(ValueError):
    """A run directory that cannot be read; the message names the file and what is wrong."""


def save_run(directory: Path, config: AnyConfig, network: nn.Module) -> None:
    """Write config and weights, each whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    document = {"type": type(config).__name__, **dataclasses.asdict(config)}
    partial = directory / (CONFIG_FILE + ".partial")
    partial.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    partial.replace(directory / CONFIG_FILE)
    partial = directory / (WEIGHTS_FILE + ".partial")
    save_file(network.state_dict(), partial)
    partial.replace(directory / WEIGHTS_FILE)


def load_run(directory: Path) -> tuple[AnyConfig, nn.Module]:
    """Read a run directory back: its config, and the network in evaluation mode.

    Raises:
        CheckpointError: a file is missing, damaged, or does not fit the other.
    """
    config = _read_config(directory / CONFIG_FILE)
    network = config.build()
    path = directory / WEIGHTS_FILE
    try:
        network.load_state_dict(load_file(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; a run directory holds one") from None
    except SafetensorError as error:
        raise CheckpointError(f"{path}: not a safetensors file: {error}") from error
    except RuntimeError as error:
        raise CheckpointError(f"{path}: weights do not fit {CONFIG_FILE}: {error}") from error
    return config, network.eval()


def _read_config(path: Path) -> AnyConfig:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; a run directory holds one") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON: {error}") from error
    kind = document.pop("type", None) if isinstance(document, dict) else None
    if kind not in _CONFIGS:
        raise CheckpointError(f"{path}: type must be one of {sorted(_CONFIGS)}; found {kind!r}")
    try:
        return _CONFIGS[kind](**{key: _tuples(value) for key, value in document.items()})
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
