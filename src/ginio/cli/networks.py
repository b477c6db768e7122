"""`ginio networks` and `ginio models`: what can be built, and what is already trained."""

from dataclasses import dataclass

import torch
from rich.table import Table

from ginio.cli.console import CONSOLE
from ginio.core.interfaces import Symmetry
from ginio.evaluation.verification import random_windows
from ginio.metrics.complexity import measure
from ginio.models import AnyConfig
from ginio.presets import NETWORKS
from ginio.runtime.zoo import load, shipped


@dataclass(frozen=True, kw_only=True)
class Networks:
    """List the named networks, with their declared symmetry and cost for one window."""

    def __call__(self) -> int:
        """Print the table."""
        table = Table(
            title="Networks, one window of 200 samples",
            caption="MACs as the papers of the field count them; operations counts all arithmetic.",
        )
        table.add_column("network")
        table.add_column("obeys")
        for column in ("parameters", "MACs", "operations"):
            table.add_column(column, justify="right")
        for name, config in NETWORKS.items():
            window = random_windows(
                1, config.channels, config.window, torch.Generator().manual_seed(0)
            ).float()
            cost = measure(config.build(), window)
            table.add_row(
                name,
                declared_laws(config),
                f"{cost.parameters:,}",
                f"{cost.paper_macs:,}",
                f"{cost.operations:,}",
            )
        CONSOLE.print(table)
        return 0


@dataclass(frozen=True, kw_only=True)
class Models:
    """List the trained networks that came with this installation."""

    def __call__(self) -> int:
        """Print the table."""
        table = Table(title="Trained networks", caption="ginio.load(NAME) works offline.")
        table.add_column("name", no_wrap=True)
        for column in ("windows", "rate", "predicts", "obeys", "trained on"):
            table.add_column(column)
        for name in shipped():
            card = load(name).card
            seconds = card.network.window / card.rate_hz
            table.add_row(
                name,
                f"{seconds:.0f} s, {card.representation.value}",
                f"{card.rate_hz:.0f} Hz",
                card.quantity.value,
                declared_laws(card.network),
                str(card.provenance.get("data", "?")),
            )
        CONSOLE.print(table)
        return 0


def declared_laws(config: AnyConfig) -> str:
    """The outputs that turn with the sensor."""
    declared = (("m", config.mean_symmetry), ("Σ", config.covariance_symmetry))
    return " ".join(symbol for symbol, law in declared if law is Symmetry.SO3) or "–"
