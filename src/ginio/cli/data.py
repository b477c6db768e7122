"""`ginio data`: what is in a folder of recordings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.markup import escape
from rich.table import Table

from ginio.cli.console import CONSOLE
from ginio.data.readers import nanobench


@dataclass(frozen=True, kw_only=True)
class Check:
    """Say what a folder of NanoBench flights holds, and what had to be cropped or left out."""

    path: Annotated[Path, tyro.conf.Positional]
    """Folder with *.csv or *.csv.gz, such as a clone of the public repository."""

    def __call__(self) -> int:
        """Print one line a flight and a summary."""
        place = escape(str(self.path))
        with CONSOLE.status(f"reading {place}"):
            flights = nanobench.inspect(self.path)
        table = Table(title=place, caption="filled: rows on a line with both neighbours")
        table.add_column("flight", no_wrap=True)
        for column in ("rows", "measured", "seconds", "tail cut", "filled"):
            table.add_column(column, justify="right")
        table.add_column("note")
        for f in flights:
            copies = f"also published as {', '.join(f.copies)}" if f.copies else ""
            table.add_row(
                f.name,
                str(f.rows),
                f"{f.valid_begin}–{f.valid_end}",
                f"{f.duration_s:.1f}",
                f"{f.tail_s:.1f} s",
                f"{100 * f.filled:.0f} %",
                "[yellow]too short to use[/]" if f.is_too_short else copies,
            )
        CONSOLE.print(table)
        usable = [f for f in flights if not f.is_too_short]
        minutes = sum(f.duration_s for f in usable) / 60
        CONSOLE.print(f"{len(usable)} usable flights, {minutes:.1f} minutes")
        return 0


@dataclass(frozen=True, kw_only=True)
class Data:
    """Look at a dataset on disk."""

    # Of one command alone tyro would make no subcommand.
    command: tyro.conf.OmitSubcommandPrefixes[
        Annotated[Check, tyro.conf.subcommand("check")] | Annotated[None, tyro.conf.Suppress]
    ]

    def __call__(self) -> int:
        """Run the command."""
        assert self.command is not None
        return self.command()
