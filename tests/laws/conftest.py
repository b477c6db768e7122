"""Every registered network, fresh and with weights that are not as they were initialised."""

import copy

import pytest
import torch
from torch import nn

from ginio.evaluation.verification import random_training, random_windows
from ginio.models import AnyConfig
from ginio.presets import NETWORKS
from ginio.training.losses import LikelihoodLoss

_TRAINED: dict[str, nn.Module] = {}


@pytest.fixture(params=sorted(NETWORKS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def config(name: str) -> AnyConfig:
    return NETWORKS[name]


@pytest.fixture
def trained(name: str, config: AnyConfig) -> nn.Module:
    """A few optimiser steps from fresh, once per network; each test gets its own copy."""
    if name not in _TRAINED:
        torch.manual_seed(0)
        network = config.build()
        generator = torch.Generator().manual_seed(0)
        random_training(network, (config.channels, config.window), 10, LikelihoodLoss(), generator)
        _TRAINED[name] = network.eval()
    return copy.deepcopy(_TRAINED[name])


@pytest.fixture
def windows(config: AnyConfig) -> torch.Tensor:
    """Sixteen windows with gravity and motion, float64."""
    return random_windows(16, config.channels, config.window, torch.Generator().manual_seed(1))
