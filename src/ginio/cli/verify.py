"""`ginio verify`: the rotation law, measured."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.table import Table
from torch import nn

import ginio
from ginio.cli.console import CONSOLE
from ginio.evaluation.verification import Check, VerificationConfig, verify
from ginio.models import AnyConfig
from ginio.presets import NETWORKS
from ginio.runtime.zoo import load, shipped
from ginio.training.losses import LikelihoodLoss


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
                checks += verify(
                    name, network, symmetries, (config.channels, config.window), loss, self.check
                )
        CONSOLE.print(law_table(checks, self.check))
        if self.json is not None:
            document = {"version": ginio.__version__, "checks": [c.as_dict() for c in checks]}
            self.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        return 0 if all(check.passed for check in checks) else 1


def find_network(name: str, *, seed: int) -> tuple[AnyConfig, nn.Module]:
    """A named network with fresh weights, or a trained one by name or run directory."""
    if name in NETWORKS:
        torch.manual_seed(seed)
        return NETWORKS[name], NETWORKS[name].build()
    if name in shipped() or Path(name).is_dir():
        run = load(name)
        return run.card.network, run.network
    raise ValueError(
        f"{name!r} is neither a network ({', '.join(NETWORKS)}), nor a trained one "
        f"({', '.join(shipped())}), nor a run directory"
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
