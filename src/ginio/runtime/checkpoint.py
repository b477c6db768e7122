"""Run directories: what a network is as JSON, its weights as safetensors, never a pickle."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, get_args

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from ginio.core.measurement import Quantity
from ginio.core.window import Representation
from ginio.models import AnyConfig
from ginio.runtime.frontend import NeuralFrontend

CARD_FILE = "card.json"
WEIGHTS_FILE = "weights.safetensors"
_CONFIGS: dict[str, type[AnyConfig]] = {c.__name__: c for c in get_args(AnyConfig)}
EnumT = TypeVar("EnumT", bound=Enum)


class CheckpointError(ValueError):
    """A run directory that cannot be read; the message names the file and what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What must be known of a network to use it, and where it came from."""

    network: AnyConfig
    representation: Representation = Representation.BODY
    quantity: Quantity = Quantity.VELOCITY
    rate_hz: float = 200.0
    """Samples per second of the windows it was trained on."""
    covariance_factor: float = 1.0
    """On every Σ of the network, fitted to windows it was not trained on; the law does not mind."""
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Data, split hash, seed, commit, versions, licence and figures; never needed to run."""

    def __post_init__(self) -> None:
        for name in ("rate_hz", "covariance_factor"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(f"{name} must be a positive number; found {value!r}")


@dataclass(frozen=True, slots=True)
class Run:
    """A trained network and its card."""

    card: Card
    network: nn.Module

    def frontend(self) -> NeuralFrontend:
        """The network as a measuring device."""
        return NeuralFrontend(
            network=self.network,  # pyright: ignore[reportArgumentType] - every network is one
            window=self.card.network.window,
            representation=self.card.representation,
            quantity=self.card.quantity,
            covariance_factor=self.card.covariance_factor,
        )


def save_run(directory: Path, card: Card, network: nn.Module) -> None:
    """Write card and weights, each whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    document = {
        "network": _tagged(card.network),
        "representation": card.representation.value,
        "quantity": card.quantity.value,
        "rate_hz": card.rate_hz,
        "covariance_factor": card.covariance_factor,
        "provenance": card.provenance,
    }
    partial = directory / (CARD_FILE + ".partial")
    partial.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    partial.replace(directory / CARD_FILE)
    partial = directory / (WEIGHTS_FILE + ".partial")
    save_file(network.state_dict(), partial)
    partial.replace(directory / WEIGHTS_FILE)


def load_run(directory: Path) -> Run:
    """Read a run directory back, the network in evaluation mode.

    Raises:
        CheckpointError: a file is missing, damaged, or does not fit the other.
    """
    card = read_card(directory / CARD_FILE)
    network = card.network.build()
    path = directory / WEIGHTS_FILE
    try:
        network.load_state_dict(load_file(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; a run directory holds one") from None
    except SafetensorError as error:
        raise CheckpointError(f"{path}: not a safetensors file: {error}") from error
    except RuntimeError as error:
        raise CheckpointError(f"{path}: weights do not fit {CARD_FILE}: {error}") from error
    return Run(card, network.eval())


def read_card(path: Path) -> Card:
    """Parse a card, refusing what is missing, unknown or out of range."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; a run directory holds one") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON: {error}") from error
    known = {f.name for f in dataclasses.fields(Card)}
    if not isinstance(document, dict) or set(document) != known:
        found = sorted(document) if isinstance(document, dict) else type(document).__name__
        raise CheckpointError(f"{path}: expected the keys {sorted(known)}; found {found}")
    values = {
        "network": _network_config(path, document["network"]),
        "representation": _member(path, Representation, document["representation"]),
        "quantity": _member(path, Quantity, document["quantity"]),
    }
    try:
        return Card(**document | values)
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _tagged(config: AnyConfig) -> dict[str, Any]:
    """A config as a document that names its type, and those of the configs it holds."""
    values = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    nested = {k: _tagged(v) for k, v in values.items() if isinstance(v, AnyConfig)}
    return {"type": type(config).__name__, **values, **nested}


def _network_config(path: Path, document: Any) -> AnyConfig:
    kind = document.pop("type", None) if isinstance(document, dict) else None
    if kind not in _CONFIGS:
        raise CheckpointError(f"{path}: type must be one of {sorted(_CONFIGS)}; found {kind!r}")
    values: dict[str, Any] = {
        key: _network_config(path, value) if isinstance(value, dict) else _tuples(value)
        for key, value in document.items()
    }
    try:
        return _CONFIGS[kind](**values)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _member(path: Path, enum: type[EnumT], value: Any) -> EnumT:
    try:
        return enum(value)
    except ValueError:
        options = ", ".join(str(member.value) for member in enum)
        raise CheckpointError(
            f"{path}: {enum.__name__.lower()} must be one of {options}; found {value!r}"
        ) from None


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
