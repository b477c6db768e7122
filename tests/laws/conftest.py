"""Every registered network, fresh and with weights that are not as they were initialised."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from ginio.evaluation.verification import random_training, random_windows
from ginio.models import AnyConfig, ResNet1dConfig
from ginio.presets import NETWORKS
from ginio.training.losses import LikelihoodLoss

# The laws ask how a network is built, not how wide it is. The two that cost most are held to them
# in a narrow version; test_counts.py has them whole.
NARROW_BACKBONE = ResNet1dConfig(
    stem_channels=16, groups=((16, 1), (32, 1)), head_narrow=8, head_hidden=32
)
NARROW: dict[str, AnyConfig] = {
    name: replace(NETWORKS[name], hidden=16, backbone=NARROW_BACKBONE)
    for name in ("eqnio-o2", "eqnio-so2")
}
_TRAINED: dict[AnyConfig, nn.Module] = {}


@pytest.fixture(params=sorted(NETWORKS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def config(name: str) -> AnyConfig:
    return NARROW.get(name, NETWORKS[name])


@pytest.fixture
def trained(config: AnyConfig) -> nn.Module:
    """A few optimiser steps from fresh, once per network; each test gets its own copy."""
    if config not in _TRAINED:
        torch.manual_seed(0)
        network = config.build()
        generator = torch.Generator().manual_seed(0)
        random_training(network, (config.channels, config.window), 10, LikelihoodLoss(), generator)
        _TRAINED[config] = network.eval()
    return copy.deepcopy(_TRAINED[config])


@pytest.fixture
def windows(config: AnyConfig) -> torch.Tensor:
    """Sixteen windows with gravity and motion, float64."""
    return random_windows(16, config.channels, config.window, torch.Generator().manual_seed(1))
