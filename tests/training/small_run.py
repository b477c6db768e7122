"""A network small enough to train in a test."""

from pathlib import Path

from ginio.core import Quantity
from ginio.data.corpus import Corpus
from ginio.data.windows import WindowSet
from ginio.models import TemporalConfig
from ginio.training.config import TrainConfig
from ginio.training.trainer import Trainer

SMALL = TemporalConfig(
    window=32, groups=((6, 1),), norm="layer", head_narrow=4, head_hidden=12, dropout=0.1
)


def make_trainer(config: TrainConfig, corpus: Corpus, directory: Path) -> Trainer:
    windows = WindowSet(corpus, config.network.window, Quantity.VELOCITY)
    return Trainer(config, windows, windows, directory)
