"""Proposition 1: a world-frame prediction is the LFA prediction turned by the last attitude."""

import pytest
import torch
from torch import nn

from ginio.core import Quantity, Representation, Symmetry, represent
from ginio.geometry import so3
from ginio.models import AnyConfig
from ginio.presets import NETWORKS
from ginio.runtime.frontend import NeuralFrontend

LAW_KEEPERS = [
    n
    for n, c in NETWORKS.items()
    if c.mean_symmetry is Symmetry.SO3
    and c.channels == Representation.LAST.channels
    and "paper" not in n
]


def tumbling_attitudes(count: int, length: int) -> torch.Tensor:
    rate = torch.randn(count, 1, 3, dtype=torch.float64)
    time = torch.linspace(0, 1, length, dtype=torch.float64)[:, None]
    return so3.random(count, dtype=torch.float64).unsqueeze(1) @ so3.exp(rate * time)


def measure(
    network: nn.Module, config: AnyConfig, windows: torch.Tensor, frame: Representation
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    acc_s, gyr_s = windows[:, 0].mT, windows[:, 1].mT
    torch.manual_seed(3)
    window = represent(acc_s, gyr_s, tumbling_attitudes(len(windows), config.window), frame)
    frontend = NeuralFrontend(
        network=network.double(),
        window=config.window,
        representation=frame,
        quantity=Quantity.VELOCITY,
    )
    measurement = frontend.measure(window)
    in_world = measurement.rotated(window.R_wf)
    return in_world.mean, in_world.covariance.matrix(), measurement.mean


@pytest.mark.parametrize("name", LAW_KEEPERS)
def test_world_prediction_is_the_turned_lfa_prediction(
    name: str, config: AnyConfig, trained: nn.Module, windows: torch.Tensor
) -> None:
    mean_world, sigma_world, _ = measure(trained, config, windows, Representation.WORLD)
    mean_last, sigma_last, mean_l = measure(trained, config, windows, Representation.LAST)
    assert (mean_world - mean_last).norm() <= 1e-12 * mean_world.norm()
    if config.covariance_symmetry is Symmetry.SO3:
        assert (sigma_world - sigma_last).norm() <= 1e-12 * sigma_world.norm()
    assert (mean_world - mean_l).norm() >= 0.1 * mean_world.norm()


@pytest.mark.parametrize("name", ["resnet1d"])
def test_a_network_without_the_symmetry_does_not_have_the_equivalence(
    name: str, config: AnyConfig, trained: nn.Module, windows: torch.Tensor
) -> None:
    mean_world, *_ = measure(trained, config, windows, Representation.WORLD)
    mean_last, *_ = measure(trained, config, windows, Representation.LAST)
    assert (mean_world - mean_last).norm() >= 0.1 * mean_world.norm()
