"""A study of networks too small to be good, on circles instead of flights."""

from dataclasses import dataclass, replace

from strategies import circling
from tiny_runs import TINY, TINY_RESNET

from ginio.cli.study import StudySettings
from ginio.core import Representation
from ginio.data.corpus import Corpus, decimate
from ginio.data.sources import Source
from ginio.models import RecurrentConfig
from ginio.presets import StudyRun
from ginio.training.config import TrainConfig

EVERYTHING = ("rotations", "calibration", "frame errors", "remounting")
CONFIG = TrainConfig(
    network=TINY, decimate=4, steps=8, mse_steps=4, batch=4, validate_every=4, warm_up_steps=2
)
RECURRENT = RecurrentConfig(window=16, encoder=(4, 6), hidden=(4,), decoder=4)
SPECTRAL = StudyRun(config=CONFIG, protocols=EVERYTHING, is_main=True)
DIAGONAL = replace(CONFIG, network=replace(TINY, covariance="diagonal"))
STUDY = {
    "ginio-rs": SPECTRAL,
    "resnet1d": replace(
        SPECTRAL, config=replace(CONFIG, network=TINY_RESNET), protocols=("rotations",)
    ),
    "ginio-a-reduced": StudyRun(
        config=replace(
            CONFIG, network=RECURRENT, representation=Representation.BODY, is_sequence=True
        ),
        protocols=("rotations",),
    ),
    "given-diagonal": StudyRun(
        config=replace(DIAGONAL, fitted="covariance", mse_steps=0),
        given="ginio-rs",
        protocols=("rotations", "calibration"),
    ),
    "ginio-rs-cross": replace(
        SPECTRAL, config=replace(CONFIG, split="cross-trajectory"), protocols=("rotations",)
    ),
}


def tiny_source(split: str, decimate_by: int) -> Source:
    """Circles at the rate of NanoBench, or a part of it."""
    first = 0 if split == "standard" else 50
    corpora = {
        side: Corpus.join(
            decimate(
                [circling(first + 10 * i, 600, 100.0)],
                decimate_by,
            )
        )
        for i, side in enumerate(("train", "val", "test"))
    }
    return Source(corpora, 100.0 / decimate_by, split, f"hash-of-{split}")


@dataclass(frozen=True, kw_only=True)
class TinySettings(StudySettings):
    """The settings of a study, with circles for data in whatever process."""

    def source(self, config: TrainConfig, decimate_by: int) -> Source:
        return tiny_source(config.split, decimate_by)
