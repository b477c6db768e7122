"""A small corpus of exact motion, and a short run."""

import pytest
from small_run import SMALL
from strategies import circling

from ginio.data.corpus import Corpus
from ginio.training.config import TrainConfig


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return Corpus.join([circling(seed) for seed in range(4)])


@pytest.fixture
def config() -> TrainConfig:
    return TrainConfig(network=SMALL, steps=40, mse_steps=20, batch=16, validate_every=20)
