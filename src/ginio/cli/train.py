"""`ginio train`: fit a network, watch it, stop it, take it up again."""

import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from ginio.cli.console import CONSOLE
from ginio.cli.device import DEFAULT_DEVICE, check_device
from ginio.data.sources import LICENCES, Source, open_source
from ginio.data.windows import WindowSet
from ginio.presets import RUNS
from ginio.runtime.checkpoint import Card, save_run
from ginio.training import processes
from ginio.training.config import TrainConfig
from ginio.training.provenance import commit, plain, versions
from ginio.training.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a named run. Stopped by Ctrl-C, it saves and goes on where it was next time."""

    preset: Annotated[str, tyro.conf.Positional]
    """Name of a run, as in ginio/presets.py."""
    data: Path | None = None
    """Where the dataset lies, if it is not generated."""
    out: Path | None = None
    """Run directory; runs/NAME-SEED by default."""
    steps: int | None = None
    """Train for another number of steps than the preset's, the same part of them with MSE."""
    seed: int = 0
    device: str = DEFAULT_DEVICE
    compiled: bool | None = None
    """Compile the passes: a minute's wait, then a quarter to twice as fast. By default on a GPU."""

    def __call__(self) -> int:
        """Train to the end or to Ctrl-C."""
        directory = self.out or Path("runs") / f"{self.preset}-{self.seed}"
        with processes.joined(self.device) as device:
            config = self.config(device)
            with CONSOLE.status("reading data"):
                source = open_source(
                    config.dataset,
                    split=config.split,
                    decimate_by=config.decimate,
                    root=self.data,
                    truth=config.truth,
                )
            trainer = make_trainer(config, source, directory)
            if trainer.resume():
                place = escape(str(directory))
                CONSOLE.print(f"going on from step {trainer.step} in {place}", soft_wrap=True)
            finished = watch(trainer)
            trainer.save()
            if processes.is_first():
                save_run(directory, card_of(trainer, source), trainer.average)
        place = escape(str(directory))
        CONSOLE.print(f"{'trained' if finished else 'stopped and saved'}: {place}", soft_wrap=True)
        return 0 if finished else 130

    def config(self, device: str) -> TrainConfig:
        """The preset with this command's changes."""
        if self.preset not in RUNS:
            raise ValueError(f"no run {self.preset!r}; expected one of {', '.join(RUNS)}")
        check_device(device)
        is_cuda = device.startswith("cuda")
        config = replace(
            RUNS[self.preset],
            seed=self.seed,
            device=device,
            is_compiled=is_cuda if self.compiled is None else self.compiled,
            is_captured=is_cuda,
        )
        return config if self.steps is None else config.lasting(self.steps)


def make_trainer(
    config: TrainConfig, source: Source, directory: Path, given: nn.Module | None = None
) -> Trainer:
    """A trainer on the train and val sides of a source."""
    train, val = (
        WindowSet(
            source.corpora[side].to(config.device),
            config.network.window,
            config.quantity,
            config.attitude,
        )
        for side in ("train", "val")
    )
    return Trainer(config, train, val, directory, given)


def card_of(trainer: Trainer, source: Source) -> Card:
    """What the trained network is and where it came from."""
    config = trainer.config
    found = trainer.validate()
    return Card(
        network=config.network,
        representation=config.representation,
        quantity=config.quantity,
        rate_hz=source.rate_hz,
        covariance_factor=found.covariance_factor,
        provenance={
            "data": config.dataset,
            "split": source.split,
            "split_sha256": source.split_sha256,
            "steps": trainer.step,
            "validation": {"velocity_rmse": found.velocity_rmse, "nll": found.nll},
            "config": plain(config),
            "commit": commit(),
            "versions": versions(),
            "licence": "Apache-2.0",
            "data_licence": LICENCES[config.dataset],
        },
    )


def watch(trainer: Trainer) -> bool:
    """Train with a progress bar; False if Ctrl-C ended it, always between two steps."""
    stop = False

    def request_stop(_signal: int, _frame: object) -> None:
        nonlocal stop
        stop = True

    previous = signal.signal(signal.SIGINT, request_stop)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=CONSOLE) as bar:
            task = bar.add_task("training", total=trainer.config.steps, completed=trainer.step)
            for line in trainer.run():
                val = "" if line.val_rmse is None else f", val RMSE {line.val_rmse:.4f}"
                bar.update(
                    task,
                    completed=line.step,
                    description=f"step {line.step}, loss {line.loss:.4f}{val}, "
                    f"{line.windows_per_s:.0f} windows/s",
                )
                if line.val_rmse is not None:
                    trainer.save()
                if stop:
                    return False
    finally:
        signal.signal(signal.SIGINT, previous)
    return True
