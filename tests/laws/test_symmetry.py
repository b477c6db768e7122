"""The interface law, for every network, as its config declares it."""

import pytest
import torch
from torch import nn

from ginio.core import Symmetry
from ginio.evaluation.verification import rotation_kinds
from ginio.geometry import so3
from ginio.metrics.equivariance import LawErrors, law_errors
from ginio.models import AnyConfig
from ginio.presets import NETWORKS

KINDS = ["uniform", "near identity", "half turn"]
SO3_NETWORKS = [n for n, c in NETWORKS.items() if c.mean_symmetry is Symmetry.SO3]


def errors(
    network: nn.Module, windows: torch.Tensor, dtype: torch.dtype, kind: str = "uniform"
) -> LawErrors:
    R_ms = rotation_kinds(len(windows), torch.Generator().manual_seed(2))[kind]
    with torch.no_grad():
        return law_errors(network.to(dtype), windows.to(dtype), R_ms.to(dtype))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [n for n in SO3_NETWORKS if "paper" not in n])
def test_mean_law_holds_to_rounding(
    name: str, kind: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    found = errors(trained, windows, torch.float64, kind)
    assert found.mean_relative.max() <= 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_covariance_law_holds_to_rounding(
    config: AnyConfig, kind: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    if config.covariance_symmetry is not Symmetry.SO3:
        pytest.skip("declares no covariance symmetry; the negative control covers it")
    found = errors(trained, windows, torch.float64, kind)
    assert found.covariance_relative.max() <= 1e-12


@pytest.mark.parametrize("name", [n for n in SO3_NETWORKS if "paper" in n])
def test_batch_norm_of_lengths_keeps_the_law_but_loses_digits(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    found = errors(trained, windows, torch.float64)
    assert found.mean_relative.max() <= 1e-9


@pytest.mark.parametrize("name", ["ginio-rd", "ginio-rs"])
def test_mean_law_in_float32(name: str, trained: nn.Module, windows: torch.Tensor) -> None:
    found = errors(trained, windows.repeat(10, 1, 1, 1), torch.float32)
    assert found.mean_relative.median() <= 5e-6
    assert found.mean_relative.max() <= 2e-4


@pytest.mark.parametrize("name", ["ginio-rs"])
def test_covariance_law_in_float32(name: str, trained: nn.Module, windows: torch.Tensor) -> None:
    found = errors(trained, windows.repeat(10, 1, 1, 1), torch.float32)
    assert found.covariance_relative.median() <= 5e-6
    assert found.covariance_relative.max() <= 2e-4


@pytest.mark.parametrize("name", ["ginio-rd", "ginio-rs"])
def test_mean_law_in_float32_while_training(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    found = errors(trained.train(), windows.repeat(10, 1, 1, 1), torch.float32)
    assert found.mean_relative.median() <= 1e-5
    assert found.mean_relative.max() <= 1e-3


def test_undeclared_mean_symmetry_is_absent(
    config: AnyConfig, trained: nn.Module, windows: torch.Tensor
) -> None:
    if config.mean_symmetry is not Symmetry.NONE:
        pytest.skip("declares a symmetry; the law above covers it")
    assert errors(trained, windows, torch.float64).mean_relative.median() >= 0.1


def test_undeclared_covariance_symmetry_is_absent(
    config: AnyConfig, trained: nn.Module, windows: torch.Tensor
) -> None:
    if config.covariance_symmetry is not Symmetry.NONE:
        pytest.skip("declares a symmetry; the law above covers it")
    assert errors(trained, windows, torch.float64).covariance_relative.median() >= 0.1


@pytest.mark.parametrize("name", ["ginio-rs"])
def test_a_planted_bias_breaks_the_law(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    first = trained.stem[0]
    first.register_forward_hook(lambda _module, _inputs, out: out + 0.1)
    found = errors(trained, windows, torch.float64)
    assert found.mean_relative.median() >= 1e-3
    assert found.covariance_relative.median() >= 1e-3


@pytest.mark.parametrize("name", SO3_NETWORKS)
def test_reflections_are_not_promised(name: str, trained: nn.Module, windows: torch.Tensor) -> None:
    mirror = -torch.eye(3, dtype=torch.float64).expand(len(windows), 3, 3)
    with torch.no_grad():
        found = law_errors(trained.double(), windows, mirror)
    assert found.mean_relative.median() >= 1e-6


@pytest.mark.parametrize("name", SO3_NETWORKS)
def test_a_remounted_window_gives_the_turned_answer_for_each_window_of_a_batch(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    """Windows of one batch may each be turned by a rotation of their own, also in training."""
    R_ms = so3.random(len(windows), dtype=torch.float64)
    network = trained.double().train()
    with torch.no_grad():
        mean, *_ = network(windows)
        turned, *_ = network(R_ms.unsqueeze(1) @ windows)
    tolerance = 1e-9 if "paper" in name else 1e-12
    assert (turned - so3.rotate(R_ms, mean)).norm() <= tolerance * mean.norm()
