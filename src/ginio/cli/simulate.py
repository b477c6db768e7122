"""`ginio simulate`: synthetic flights in files like those of a real dataset."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.progress import track

from ginio.cli.console import CONSOLE
from ginio.data import synthetic
from ginio.data.export import write_nanobench
from ginio.data.synthetic import QuadrotorConfig


@dataclass(frozen=True, kw_only=True)
class Simulate:
    """Write synthetic quadrotor flights in the form in which NanoBench is published.

    The same options give the same bytes.
    """

    out: Annotated[Path, tyro.conf.Positional]
    """Folder to write to; made if it is not there, refused if it holds flights."""
    flights: int = 27
    """How many; shapes and speeds take turns, so that 27 are one of each kind."""
    seed: int = 0
    quadrotor: Annotated[
        QuadrotorConfig, tyro.conf.OmitArgPrefixes, tyro.conf.EnumChoicesFromValues
    ] = field(default_factory=QuadrotorConfig)

    def __call__(self) -> int:
        """Write the flights and say where they are."""
        self.check()
        numbers = track(
            range(self.flights), "simulating", console=CONSOLE, transient=True, show_speed=False
        )
        for number in numbers:
            flight = synthetic.fly_one(self.quadrotor, number, seed=self.seed)
            write_nanobench(flight, self.out)
        minutes = self.flights * self.quadrotor.duration_s / 60
        CONSOLE.print(
            f"wrote {self.flights} flights, {minutes:.1f} minutes, to {self.out}", soft_wrap=True
        )
        return 0

    def check(self) -> None:
        """Refuse what cannot be made, before anything is written."""
        if self.flights < 1:
            raise ValueError(f"--flights must be 1 or more; found {self.flights}")
        if self.seed < 0:
            raise ValueError(f"--seed must not be negative; found {self.seed}")
        found = sorted(self.out.rglob("*_rep*.csv*"))
        if found:
            raise ValueError(
                f"{self.out} holds {len(found)} flights already, such as {found[0].name}; "
                "expected a folder without any"
            )
