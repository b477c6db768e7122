"""`ginio COMMAND`: what the package does, from a shell."""

import sys
from collections.abc import Sequence

import tyro
from rich.markup import escape

import ginio
from ginio.cli.console import ERRORS
from ginio.cli.data import Data
from ginio.cli.demo import Demo
from ginio.cli.evaluate import Evaluate
from ginio.cli.fuse import Fuse
from ginio.cli.networks import Models, Networks
from ginio.cli.remount import Remount
from ginio.cli.report import Report
from ginio.cli.reproduce import Reproduce
from ginio.cli.simulate import Simulate
from ginio.cli.train import Train
from ginio.cli.verify import Verify
from ginio.evaluation.page import PlotlyMissingError
from ginio.training.trainer import DivergedError

COMMANDS = {
    "demo": Demo,
    "verify": Verify,
    "networks": Networks,
    "models": Models,
    "data": Data,
    "simulate": Simulate,
    "train": Train,
    "evaluate": Evaluate,
    "fuse": Fuse,
    "remount": Remount,
    "reproduce": Reproduce,
    "report": Report,
}


def run(arguments: Sequence[str] | None = None) -> int:
    """Parse a command line and run it; a user's mistake is one line, not a traceback."""
    command = tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        args=sys.argv[1:] if arguments is None else list(arguments),
        prog="ginio",
        description=ginio.__doc__,
    )
    try:
        return command()
    except (ValueError, OSError, DivergedError, PlotlyMissingError) as error:
        message = escape(str(error))
        ERRORS.print(f"[bold red]error:[/] {message}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        ERRORS.print("interrupted")
        return 130
