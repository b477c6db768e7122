"""A study as jobs, and the folder in which they leave what they did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ginio.core.recording import Recording
from ginio.data.corpus import Corpus
from ginio.data.sources import Source, open_source
from ginio.evaluation.frame_errors import SweepConfig
from ginio.evaluation.protocols import ProtocolConfig
from ginio.evaluation.remounting import RemountingConfig
from ginio.presets import StudyRun
from ginio.training.config import TrainConfig

SMOKE_STEPS, SMOKE_BATCH, SMOKE_FLIGHTS = 4, 8, 2


@dataclass(frozen=True, slots=True)
class Job:
    """One network with one seed."""

    name: str
    seed: int
    run: StudyRun

    @property
    def key(self) -> str:
        """Name of its files."""
        return f"{self.name}-{self.seed}"

    @property
    def stages(self) -> int:
        """Training, and each protocol."""
        return 1 + len(self.run.protocols)


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """What is the same for every job."""

    folder: Path
    data: Path | None = None
    steps: int | None = None
    """Instead of each run's own number; a run on a given mean takes half of it."""
    is_smoke: bool = False
    """Whether everything is done, but so little of it that figures mean nothing."""
    command: str = ""
    rotations: ProtocolConfig = field(default_factory=ProtocolConfig)
    frames: SweepConfig = field(default_factory=SweepConfig)
    remounting: RemountingConfig = field(default_factory=RemountingConfig)

    @classmethod
    def smoke(
        cls, *, folder: Path, data: Path | None, steps: int | None, command: str
    ) -> "StudySettings":
        """All protocols, on hardly anything."""
        return cls(
            folder=folder,
            data=data,
            steps=steps or SMOKE_STEPS,
            is_smoke=True,
            command=command,
            rotations=ProtocolConfig(rotations=1, stride=25),
            frames=SweepConfig(angles_deg=(20.0,), draws=1, stride=25),
            remounting=RemountingConfig(stride=25),
        )

    def directory(self, job: Job) -> Path:
        """Where a job's network is kept."""
        return self.folder / "runs" / job.key

    def result(self, key: str, protocol: str) -> Path:
        """Where the figures of a protocol are kept."""
        return self.folder / "results" / f"{key}.{protocol}.json".replace(" ", "-")

    def config(self, job: Job, device: str) -> TrainConfig:
        """How a job trains."""
        is_cuda = device.startswith("cuda")
        config = replace(
            job.run.config,
            seed=job.seed,
            device=device,
            is_captured=is_cuda,
            # Unrolled over time, a recurrent network takes longer to compile than to train.
            is_compiled=is_cuda and not job.run.config.is_sequence,
        )
        if self.steps is not None:
            given = job.run.given is not None
            config = config.lasting(max(1, self.steps // 2) if given else self.steps)
        return replace(config, batch=SMOKE_BATCH) if self.is_smoke else config

    def source(self, config: TrainConfig, decimate_by: int) -> Source:
        """The data of a run, at some rate."""
        return open_source(
            config.dataset,
            split=config.split,
            decimate_by=decimate_by,
            root=self.data,
            truth=config.truth,
        )

    def flights(self, corpus: Corpus) -> Corpus:
        """The flights that are judged."""
        if not self.is_smoke:
            return corpus
        few = range(min(SMOKE_FLIGHTS, len(corpus.names)))
        return Corpus.join([corpus.recording(number) for number in few])

    def recordings(self, recorded: Source) -> list[Recording]:
        """The same flights one by one, at the rate of a source."""
        corpus = self.flights(recorded.corpora["test"])
        return [corpus.recording(number) for number in range(len(corpus.names))]


def plan(study: Mapping[str, StudyRun], names: Sequence[str], seeds: Sequence[int]) -> list[Job]:
    """The jobs of a study; rows that are not of the main table are trained with one seed only.

    A run whose mean another one takes comes before it, whether or not it was asked for.
    """
    unknown = [name for name in names if name not in study]
    if unknown:
        raise ValueError(f"no run {', '.join(unknown)}; expected some of {', '.join(study)}")
    if not seeds:
        raise ValueError("expected at least one seed; found none")
    wanted = dict.fromkeys(names or study)
    needed = {study[name].given for name in wanted} - {None}
    chosen = [name for name in study if name in wanted or name in needed]
    return [
        Job(name, seed, study[name])
        for name in chosen
        for seed in (seeds if study[name].is_main else seeds[:1])
    ]


def bundles(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs as workers take them: each with those on its mean behind it, all others alone."""
    behind: dict[tuple[str, int], list[Job]] = {}
    for job in jobs:
        behind.setdefault((job.run.given or job.name, job.seed), []).append(job)
    return list(behind.values())


class Sources:
    """Data, each read once."""

    def __init__(self, settings: StudySettings) -> None:
        self.settings = settings
        self._opened: dict[tuple[str, str, str, int], Source] = {}

    def of(self, config: TrainConfig, decimate_by: int | None = None) -> Source:
        """The data a run is trained on, or the same at another rate."""
        factor = decimate_by or config.decimate
        key = (config.dataset, config.split, config.truth, factor)
        if key not in self._opened:
            self._opened[key] = self.settings.source(config, factor)
        return self._opened[key]
