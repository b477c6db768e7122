"""`ginio reproduce`: a whole study, trained, judged and reported by one command."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ginio.cli.console import CONSOLE
from ginio.cli.crew import Outcome, run_apart, run_here
from ginio.cli.device import DEFAULT_DEVICE, check_device
from ginio.cli.report import write_report
from ginio.cli.study import Job, Sources, StudySettings, bundles, plan
from ginio.cli.study_work import check_same, judge_baselines
from ginio.evaluation.page import plotly_js
from ginio.presets import NANOBENCH_STUDY


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Train, judge and report a whole study. Stopped or killed, it goes on where it was next time.

    A device named twice does two trainings at a time: networks this small do not fill a large one.
    """

    study: Annotated[Literal["nanobench"], tyro.conf.Positional]
    data: Path | None = None
    """Where the dataset lies; without it, the environment variable GINIO_NANOBENCH."""
    out: Path | None = None
    """Folder of networks, results and report; runs/STUDY by default."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Rows of the main table are trained with each of them, all others with the first."""
    devices: tuple[str, ...] = (DEFAULT_DEVICE,)
    steps: int | None = None
    """Train for another number of steps than the study's."""
    runs: tuple[str, ...] = ()
    """Names of some networks of the study; all by default."""
    smoke: bool = False
    """Do all of it, but so little that the figures mean nothing: a trial of the machinery."""

    def __call__(self) -> int:
        """Do what is not done yet, and report."""
        plotly_js()  # Hours of work shall not end in a page that cannot be written.
        settings = self.settings()
        jobs = plan(NANOBENCH_STUDY, self.runs, self.seeds)
        for device in self.devices:
            check_device(device)
        for job in jobs:
            check_same(settings.directory(job), settings.config(job, self.devices[0]))
        sources = Sources(settings)
        with CONSOLE.status("reading data"):
            for config in {job.run.config.split: job.run.config for job in jobs}.values():
                judge_baselines(settings, sources, config)
        outcome = run_all(jobs, settings, sources, self.devices)
        for failure in outcome.failures:
            CONSOLE.print(f"[bold red]failed:[/] {escape(failure)}", soft_wrap=True)
        if not outcome.is_whole:
            CONSOLE.print("stopped and saved; the same command goes on")
            return 130
        page = write_report(settings.folder)
        CONSOLE.print(f"See it in a browser: {escape(str(page))}", soft_wrap=True)
        return 1 if outcome.failures else 0

    def settings(self) -> StudySettings:
        """What is the same for every job."""
        if not self.devices:
            raise ValueError("expected at least one device; found none")
        folder = self.out or Path("runs") / self.study
        command = f"ginio reproduce {self.study} --seeds {' '.join(map(str, self.seeds))}"
        command += f" --runs {' '.join(self.runs)}" if self.runs else ""
        command += "" if self.steps is None else f" --steps {self.steps}"
        if self.smoke:
            return StudySettings.smoke(
                folder=folder, data=self.data, steps=self.steps, command=f"{command} --smoke"
            )
        return StudySettings(folder=folder, data=self.data, steps=self.steps, command=command)


def run_all(
    jobs: Sequence[Job], settings: StudySettings, sources: Sources, devices: Sequence[str]
) -> Outcome:
    """Do all jobs, under one bar for everything and one for each device."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=CONSOLE) as bar:
        study = bar.add_task("study", total=sum(job.stages for job in jobs))
        of_worker = [bar.add_task(escape(device), total=None) for device in devices]

        def tell(worker: int, stages: float, text: str) -> None:
            bar.update(of_worker[worker], completed=stages, description=escape(text))
            done = sum(task.completed for task in bar.tasks if task.id != study)
            bar.update(study, completed=done)

        if len(devices) == 1:
            return run_here(jobs, settings, sources, devices[0], tell)
        return run_apart(bundles(jobs), settings, devices, tell)
