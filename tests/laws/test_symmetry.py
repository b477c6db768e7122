"""The interface law, for every network, as its config declares it."""

import pytest
import torch
from torch import nn

from ginio.core import Symmetry
from ginio.evaluation.verification import MIRRORS, VERTICAL, mirrors, rotation_kinds
from ginio.geometry import so3
from ginio.metrics.equivariance import LawErrors, law_errors
from ginio.models import AnyConfig
from ginio.presets import NETWORKS

KINDS = ["uniform", "near identity", "half turn"]
SO3_NETWORKS = [n for n, c in NETWORKS.items() if c.mean_symmetry is Symmetry.SO3]


UPRIGHT_NETWORKS = [
    n for n, c in NETWORKS.items() if c.mean_symmetry in {Symmetry.SO2, Symmetry.O2}
]
O2_NETWORKS = [n for n, c in NETWORKS.items() if c.mean_symmetry is Symmetry.O2]
SO2_NETWORKS = [n for n, c in NETWORKS.items() if c.mean_symmetry is Symmetry.SO2]


def errors(
    network: nn.Module, windows: torch.Tensor, dtype: torch.dtype, kind: str = "uniform"
) -> LawErrors:
    generator = torch.Generator().manual_seed(2)
    R_ms = (rotation_kinds(len(windows), generator) | {MIRRORS: mirrors(len(windows), generator)})[
        kind
    ]
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


def tilts(count: int, degrees: float) -> torch.Tensor:
    """Rotations about horizontal axes."""
    heading = 2 * torch.pi * torch.rand(count, dtype=torch.float64)
    axis = torch.stack((heading.cos(), heading.sin(), torch.zeros_like(heading)), dim=-1)
    return so3.exp(axis * torch.pi * degrees / 180)


@pytest.mark.parametrize("name", UPRIGHT_NETWORKS)
def test_rotations_about_the_vertical_are_kept(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    found = errors(trained, windows, torch.float64, VERTICAL)
    assert found.mean_relative.max() <= 1e-12
    assert found.covariance_relative.max() <= 1e-12


@pytest.mark.parametrize("name", O2_NETWORKS)
def test_mirrors_that_keep_the_vertical_are_kept(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    found = errors(trained, windows, torch.float64, MIRRORS)
    assert found.mean_relative.max() <= 1e-12
    assert found.covariance_relative.max() <= 1e-12


@pytest.mark.parametrize("name", O2_NETWORKS)
def test_a_mirror_that_takes_angular_rates_for_arrows_is_seen(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    """Negative control: the mirror of an axial vector is not that of a polar one."""
    mirror = mirrors(len(windows), torch.Generator().manual_seed(2))
    with torch.no_grad():
        mean, *_ = trained.double()(windows)
        found, *_ = trained.double()(mirror.unsqueeze(1) @ windows)
    expected = so3.rotate(mirror, mean)
    assert (found - expected).norm() >= 0.1 * expected.norm()


@pytest.mark.parametrize("name", SO2_NETWORKS)
def test_mirrors_are_not_promised_by_rotations_about_the_vertical(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    assert errors(trained, windows, torch.float64, MIRRORS).mean_relative.median() >= 0.1


@pytest.mark.parametrize("name", UPRIGHT_NETWORKS)
def test_a_tilt_is_not_kept_by_what_relies_on_the_vertical(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    with torch.no_grad():
        found = law_errors(trained.double(), windows, tilts(len(windows), 60))
    assert found.mean_relative.median() >= 0.1
    assert found.covariance_relative.median() >= 0.1


@pytest.mark.parametrize("name", ["ginio-e"])
def test_canonicalisation_keeps_the_law_to_rounding_in_the_middle(
    name: str, trained: nn.Module, windows: torch.Tensor
) -> None:
    """The worst windows are those whose two vectors are nearly parallel."""
    found = errors(trained, windows, torch.float64)
    assert found.mean_relative.median() <= 1e-14
    assert found.covariance_relative.median() <= 1e-14


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
    means = []
    for x in (windows, R_ms.unsqueeze(1) @ windows):
        torch.manual_seed(4)  # Dropout drops the same.
        with torch.no_grad():
            means.append(network(x)[0])
    mean, turned = means
    tolerance = 1e-9 if "paper" in name else 1e-12
    assert (turned - so3.rotate(R_ms, mean)).norm() <= tolerance * mean.norm()
