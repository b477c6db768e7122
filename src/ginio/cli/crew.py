"""Several workers on several devices, and one way to stop them all."""

import multiprocessing
import queue
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ginio.cli.study import Job, Sources, StudySettings
from ginio.cli.study_work import StoppedError, Worker

POLL_S = 0.5
Tell = Callable[[int, float, str], None]
"""A worker, how many of its stages are done, and what it does."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of some jobs."""

    failures: tuple[str, ...] = ()
    is_whole: bool = True
    """Whether nobody stopped them."""

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(self.failures + other.failures, self.is_whole and other.is_whole)


def run_here(
    jobs: Sequence[Job], settings: StudySettings, sources: Sources, device: str, tell: Tell
) -> Outcome:
    """Do all jobs in this process."""
    stop = False

    def request_stop() -> None:
        nonlocal stop
        stop = True

    worker = Worker(
        settings=settings,
        sources=sources,
        device=device,
        tell=lambda stages, text: tell(0, stages, text),
        stopped=lambda: stop,
    )
    with on_interrupt(request_stop):
        return do_all(jobs, worker)


def run_apart(
    jobs: Sequence[Sequence[Job]], settings: StudySettings, devices: Sequence[str], tell: Tell
) -> Outcome:
    """Do bundles of jobs in a process for each device; whoever is free takes the next."""
    context = multiprocessing.get_context("spawn")
    messages, stop, taken = context.Queue(), context.Event(), context.Value("i", 0)
    crew = [
        context.Process(target=work, args=(number, jobs, taken, settings, device, messages, stop))
        for number, device in enumerate(devices)
    ]
    # What is ignored now is ignored by them from their first instant on.
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    for process in crew:
        process.start()
    signal.signal(signal.SIGINT, previous)
    with on_interrupt(stop.set):
        outcomes = listen(crew, messages, tell)
        for process in crew:
            process.join()
    return sum(outcomes.values(), Outcome())


def listen(crew: Sequence[Any], messages: Any, tell: Tell) -> dict[int, Outcome]:
    """Pass on what workers say until each has ended, or is gone without a word."""
    outcomes: dict[int, Outcome] = {}
    while len(outcomes) < len(crew):
        try:
            number, said = messages.get(timeout=POLL_S)
        except queue.Empty:
            for number, process in enumerate(crew):
                if process.exitcode is not None and number not in outcomes:
                    gone = f"worker {number} ended with exit code {process.exitcode}"
                    outcomes[number] = Outcome((gone,))
            continue
        if isinstance(said, Outcome):
            outcomes[number] = said
        else:
            tell(number, *said)
    return outcomes


def work(  # noqa: PLR0913, PLR0917 - a process is told everything at its start
    number: int,
    jobs: Sequence[Sequence[Job]],
    taken: Any,
    settings: StudySettings,
    device: str,
    messages: Any,
    stop: Any,
) -> None:
    """Do jobs in a process of their own, until none is left."""
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    worker = Worker(
        settings=settings,
        sources=Sources(settings),
        device=device,
        tell=lambda stages, text: messages.put((number, (stages, text))),
        stopped=stop.is_set,
    )
    messages.put((number, do_all(left(jobs, taken), worker)))


def left(jobs: Sequence[Sequence[Job]], taken: Any) -> Iterator[Job]:
    """What no other process has taken, a bundle at a time."""
    while True:
        with taken.get_lock():
            mine, taken.value = taken.value, taken.value + 1
        if mine >= len(jobs):
            return
        yield from jobs[mine]


def do_all(jobs: Iterable[Job], worker: Worker) -> Outcome:
    """Do jobs one after the other; one that fails does not keep the others from being done."""
    outcome, stages_done = Outcome(), 0.0
    for job in jobs:
        outcome += attempt(job, worker, stages_done)
        if not outcome.is_whole:
            break
        stages_done += job.stages
    return outcome


def attempt(job: Job, worker: Worker, stages_done: float) -> Outcome:
    """Do one job, or say why not."""
    try:
        worker.do(job, stages_done)
    except StoppedError:
        return Outcome(is_whole=False)
    except (ValueError, OSError, RuntimeError) as error:
        return Outcome((f"{job.key}: {error}",))
    return Outcome()


@contextmanager
def on_interrupt(request_stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C asks for a stop; a second one does not wait for it."""
    previous = signal.getsignal(signal.SIGINT)

    def once(_signal: int, _frame: object) -> None:
        request_stop()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
