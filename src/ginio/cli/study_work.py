"""What the jobs of a study do: train a network, judge it by its protocols.

Whatever is finished is found in the study's folder and not done again, so a study can be stopped,
killed and taken up at any point.
"""

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ginio.cli.study import Job, Sources, StudySettings
from ginio.cli.train import card_of, make_trainer
from ginio.core.window import Representation
from ginio.data.sources import Source
from ginio.data.windows import WindowSet
from ginio.evaluation.calibration import calibrate
from ginio.evaluation.frame_errors import sweep
from ginio.evaluation.protocols import STRAPDOWN, Score, evaluate, trivial_baselines
from ginio.evaluation.remounting import Device, remounting_scores, trivial_scores
from ginio.evaluation.results import Result, write_result
from ginio.presets import CROSS, Protocol
from ginio.runtime.checkpoint import CARD_FILE, Run, load_run, save_run
from ginio.training.config import TrainConfig
from ginio.training.provenance import commit, plain, versions
from ginio.training.trainer import STATE_FILE, Trainer

CONFIG_FILE = "config.json"
SAVE_EVERY_S = 10.0
ALIGNED = (Representation.LAST, Representation.LAST_BODY)
Tell = Callable[[float, str], None]
"""How many stages of a worker's jobs are done, and what it does now."""
Stopped = Callable[[], bool]


class StoppedError(RuntimeError):
    """The user asked for a stop; what was begun is saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Does jobs on one device, one after the other."""

    settings: StudySettings
    sources: Sources
    device: str
    tell: Tell
    stopped: Stopped

    def do(self, job: Job, stages_done: float = 0.0) -> None:
        """Train and judge one network, or what of it is not done yet."""
        self.train(job, stages_done)
        for protocol in job.run.protocols:
            stages_done += 1
            self.tell(stages_done, f"{job.key}: {protocol}")
            if self.stopped():
                raise StoppedError
            path = self.settings.result(job.key, protocol)
            if not path.exists():
                write_result(path, self.judge(job, protocol))
        self.tell(stages_done + 1, f"{job.key}: done")

    def train(self, job: Job, stages_done: float = 0.0) -> None:
        """Train a network to its end, from where it was left."""
        directory, config = self.settings.directory(job), self.settings.config(job, self.device)
        check_same(directory, config)
        if (directory / CARD_FILE).exists():
            return
        self.tell(stages_done, f"{job.key}: begins")
        torch.backends.cudnn.allow_tf32 = True
        # The compiler gives up on a function that it has met with too many networks.
        torch.compiler.reset()
        source = self.sources.of(config)
        given = None
        if job.run.given is not None:
            given = load_run(self.settings.directory(replace(job, name=job.run.given))).network
        trainer = make_trainer(config, source, directory, given)
        trainer.resume()
        self.watch(trainer, job.key, stages_done)
        # The card is written last: a run that has one is finished.
        save_run(directory, card_of(trainer, source), trainer.average)
        (directory / STATE_FILE).unlink(missing_ok=True)
        # A trainer and its losses know each other: until both are collected, so is no graph.
        del trainer
        gc.collect()
        torch.cuda.empty_cache()

    def watch(self, trainer: Trainer, key: str, stages_done: float) -> None:
        """Train, saving now and then, and when asked to stop."""
        steps, saved = trainer.config.steps, time.monotonic()
        for line in trainer.run():
            part = line.step / steps
            self.tell(stages_done + part, f"{key}: step {line.step}, loss {line.loss:.3f}")
            if self.stopped() or time.monotonic() - saved > SAVE_EVERY_S:
                trainer.save()
                saved = time.monotonic()
            if self.stopped() and line.step < steps:
                raise StoppedError

    def judge(self, job: Job, protocol: Protocol) -> Result:
        """What one protocol finds of a trained network."""
        # TF32 keeps ten bits, and its rounding obeys no law of rotations.
        torch.backends.cudnn.allow_tf32 = False
        config = self.settings.config(job, self.device)
        run, source = load_run(self.settings.directory(job)), self.sources.of(config)
        run.network.to(self.device)
        made = self.made(config, run, source)
        # Judged is what a head learnt, as the paper does, not what validation makes of it.
        run = replace(run, card=replace(run.card, covariance_factor=1.0))
        test = self.settings.flights(source.corpora["test"]).to(self.device)
        windows = WindowSet(test, config.network.window, config.quantity)
        result = Result(run=job.name, seed=job.seed, protocol=protocol, made=made)
        if protocol == "calibration":
            stride = self.settings.rotations.stride
            found = calibrate(run.frontend(), config.representation, windows, stride)
            return replace(result, calibration=found)
        scores = self.scores(run, windows, protocol, config)
        return replace(result, scores=tuple(self.watched(scores)))

    def scores(
        self, run: Run, windows: WindowSet, protocol: Protocol, config: TrainConfig
    ) -> Iterator[Score]:
        """The scores of a protocol, one at a time."""
        frontend, frame, settings = run.frontend(), run.card.representation, self.settings
        if protocol == "rotations":
            return evaluate(frontend, frame, windows, settings.rotations)
        if protocol == "frame errors":
            # Only an aligned window is made of relative rotations.
            kinds = settings.frames.kinds if frame in ALIGNED else ("gravity",)
            return sweep(frontend, frame, windows, replace(settings.frames, kinds=kinds))
        device = Device(
            frontend=frontend,
            representation=frame,
            window=config.network.window,
            decimate_by=config.decimate,
            device=self.device,
        )
        flights = settings.recordings(self.sources.of(config, decimate_by=1))
        return remounting_scores(device, flights, settings.remounting)

    def watched(self, scores: Iterator[Score]) -> Iterator[Score]:
        """The same scores; a stop is possible after each."""
        for score in scores:
            if self.stopped():
                raise StoppedError
            yield score

    def made(self, config: TrainConfig, run: Run, source: Source) -> dict[str, Any]:
        """All that decides a figure of a network."""
        provenance = run.card.provenance
        return made(self.settings, source) | {
            "steps": provenance["steps"],
            "covariance_factor": run.card.covariance_factor,
            "trained_at": {name: provenance[name] for name in ("commit", "versions")},
            "parameters": sum(p.numel() for p in run.network.parameters()),
            "representation": config.representation.value,
            "turn": config.augment.turn,
            "truth": config.truth,
            "window_s": config.network.window / source.rate_hz,
        }


def judge_baselines(settings: StudySettings, sources: Sources, config: TrainConfig) -> None:
    """Standing still and strapdown on the flights of a run, if that is not done yet."""
    suffix = "" if config.split == "standard" else CROSS
    if settings.result(STRAPDOWN + suffix, "rotations").exists():
        return
    source = sources.of(config)
    found: dict[Protocol, dict[str, list[Score]]] = {}
    if not suffix:
        flights = settings.recordings(sources.of(config, decimate_by=1))
        found["remounting"] = trivial_scores(flights, config.decimate, settings.remounting)
    test = settings.flights(source.corpora["test"])
    found["rotations"] = trivial_baselines(test, settings.rotations)
    for protocol, by_label in found.items():
        for label, scores in by_label.items():
            result = Result(
                run=label + suffix,
                seed=0,
                protocol=protocol,
                made=made(settings, source) | {"truth": config.truth},
                scores=tuple(scores),
            )
            write_result(settings.result(label + suffix, protocol), result)


def made(settings: StudySettings, source: Source) -> dict[str, Any]:
    """All that decides a figure, whatever it is of."""
    return {
        "command": settings.command,
        "is_smoke": settings.is_smoke,
        "split": source.split,
        "split_sha256": source.split_sha256,
        "commit": commit(),
        "versions": versions(),
        "protocols": {
            "rotations": plain(settings.rotations),
            "frame errors": plain(settings.frames),
            "remounting": plain(settings.remounting),
        },
    }


def check_same(directory: Path, config: TrainConfig) -> None:
    """Refuse to go on with a run that was begun with other settings."""
    document = json.loads(json.dumps(plain(config)))
    for name in ("device", "is_compiled", "is_captured"):
        del document[name]
    path = directory / CONFIG_FILE
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return
    found, wanted = flat(json.loads(path.read_text(encoding="utf-8"))), flat(document)
    changed = [name for name in wanted if found.get(name) != wanted[name]]
    if changed:
        name = changed[0]
        raise ValueError(
            f"{directory} was begun with {name} {found.get(name)!r}; expected {wanted[name]!r}: "
            "choose another folder with --out, or remove this one"
        )


def flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under one dotted name each."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        inner = flat(value, f"{prefix}{name}.") if isinstance(value, dict) else None
        found |= {f"{prefix}{name}": value} if inner is None else inner
    return found
