"""`ginio COMMAND`: what the package does, from a shell."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console
from rich.table import Table
from torch import nn

import ginio
from ginio.core.interfaces import Symmetry
from ginio.evaluation.verification import Check, VerificationConfig, random_windows, verify
from ginio.metrics.complexity import measure
from ginio.models import AnyConfig
from ginio.presets import NETWORKS
from ginio.runtime.checkpoint import CONFIG_FILE, load_run
from ginio.training.losses import LikelihoodLoss

CONSOLE = Console()
ERRORS = Console(stderr=True)


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Measure whether networks obey the rotation law, in mean and covariance.

    Exit code 1 if a symmetry that a network declares is broken.
    """

    networks: Annotated[tuple[str, ...], tyro.conf.Positional] = ("ginio-rs", "resnet1d")
    """Names of networks, or run directories of trained ones."""
    check: Annotated[VerificationConfig, tyro.conf.OmitArgPrefixes] = field(
        default_factory=VerificationConfig
    )
    json: Path | None = None
    """Write every figure to this file."""

    def __call__(self) -> int:
        """Run the checks and print the table."""
        checks: list[Check] = []
        candidates = [(name, *find_network(name, seed=self.check.seed)) for name in self.networks]
        with CONSOLE.status("verifying") as status:
            for name, config, network in candidates:
                status.update(f"verifying {name}")
                symmetries = (config.mean_symmetry, config.covariance_symmetry)
                loss = LikelihoodLoss()
                checks += verify(name, network, symmetries, config.window, loss, self.check)
        CONSOLE.print(law_table(checks, self.check))
        if self.json is not None:
            document = {"version": ginio.__version__, "checks": [c.as_dict() for c in checks]}
            self.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        return 0 if all(check.passed for check in checks) else 1


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
            window = random_windows(1, config.window, torch.Generator().manual_seed(0)).float()
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


def declared_laws(config: AnyConfig) -> str:
    """The outputs that turn with the sensor."""
    declared = (("m", config.mean_symmetry), ("Σ", config.covariance_symmetry))
    return " ".join(symbol for symbol, law in declared if law is Symmetry.SO3) or "–"


def find_network(name: str, *, seed: int) -> tuple[AnyConfig, nn.Module]:
    """A named network with fresh weights, or a trained one from its run directory."""
    if name in NETWORKS:
        torch.manual_seed(seed)
        return NETWORKS[name], NETWORKS[name].build()
    if Path(name).is_dir():
        return load_run(Path(name))
    raise ValueError(
        f"{name!r} is neither a network ({', '.join(NETWORKS)}) nor a run directory "
        f"(a folder with {CONFIG_FILE})"
    )


def law_table(checks: Sequence[Check], config: VerificationConfig) -> Table:
    """Relative errors of both laws: median over uniform rotations, and the worst of all."""
    cases = config.windows * config.rotations
    table = Table(
        title="Does G(ρ(R) Z) = (R m, R Σ Rᵀ) hold?",
        caption=f"Relative errors, median … worst over {cases} each of uniform, near-identity, "
        f"half-turn and vertical rotations; weights fresh and after {config.steps} training steps. "
        "~: the law is there, but rounding is blown up.",
    )
    for column in ("network", "weights", "mean m", "covariance Σ", "obeys"):
        table.add_column(column)
    for name, of_network in groupby(checks, lambda c: c.network):
        for (dtype, steps), of_run in groupby(of_network, lambda c: (c.dtype, c.steps)):
            run_checks = list(of_run)
            uniform = next(c for c in run_checks if c.rotations == "uniform")
            mean_worst = max(c.mean.relative_max for c in run_checks)
            covariance_worst = max(c.covariance.relative_max for c in run_checks)
            table.add_row(
                name,
                f"{dtype} {'trained' if steps else 'fresh'}",
                f"{uniform.mean.relative_median:.0e} … {mean_worst:.0e}",
                f"{uniform.covariance.relative_median:.0e} … {covariance_worst:.0e}",
                law_verdict(run_checks),
            )
        table.add_section()
    return table


def law_verdict(checks: Sequence[Check]) -> str:
    """Which of the laws a network declares were found to hold."""
    parts: list[str] = []
    for symbol, verdicts in (
        ("m", {c.mean_verdict for c in checks}),
        ("Σ", {c.covariance_verdict for c in checks}),
    ):
        if "BROKEN" in verdicts:
            parts.append(f"[bold red]{symbol} BROKEN[/]")
        elif "ill-conditioned" in verdicts:
            parts.append(f"[yellow]{symbol}~[/]")
        elif "holds" in verdicts:
            parts.append(f"[green]{symbol}[/]")
    return " ".join(parts) or "–"


def run(arguments: Sequence[str] | None = None) -> int:
    """Parse a command line and run it; a user's mistake is one line, not a traceback."""
    command = tyro.extras.subcommand_cli_from_dict(
        {"verify": Verify, "networks": Networks},
        args=sys.argv[1:] if arguments is None else list(arguments),
        prog="ginio",
        description=ginio.__doc__,
    )
    try:
        return command()
    except (ValueError, OSError) as error:
        ERRORS.print(f"[bold red]error:[/] {error}", highlight=False)
        return 2
