"""What every network must do beside its symmetry."""

import copy
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from ginio.core.interfaces import Network, NetworkConfig
from ginio.models import AnyConfig
from ginio.runtime.checkpoint import Card, load_run, save_run
from ginio.training.losses import LikelihoodLoss

# AirIO with attitude defines layers it never calls; whoever counts it counts them.
DEAD_AS_PUBLISHED = {"airio-attitude": "never_used."}


def test_config_and_network_keep_their_protocols(config: AnyConfig, trained: nn.Module) -> None:
    assert isinstance(config, NetworkConfig)
    assert isinstance(trained, Network)


def test_every_parameter_receives_a_gradient(
    name: str, config: AnyConfig, trained: nn.Module, windows: torch.Tensor
) -> None:
    network = trained.double().train()
    LikelihoodLoss()(network, windows, torch.randn(len(windows), 3).double()).backward()
    dead = [n for n, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    assert [n for n in dead if not n.startswith(DEAD_AS_PUBLISHED.get(name, "nothing"))] == []


@pytest.mark.parametrize("name", DEAD_AS_PUBLISHED)
def test_what_is_dead_as_published_is_all_that_its_name_says(
    name: str, config: AnyConfig, trained: nn.Module, windows: torch.Tensor
) -> None:
    """It makes no difference, so it is no part of the network but of its published size."""
    changed = copy.deepcopy(trained)
    unused = [p for n, p in changed.named_parameters() if n.startswith(DEAD_AS_PUBLISHED[name])]
    assert sum(p.numel() for p in unused) == 32_736
    with torch.no_grad():
        for parameter in unused:
            parameter.fill_(torch.nan)
        outputs = zip(changed.double()(windows), trained.double()(windows), strict=True)
    assert all(torch.equal(a, b) for a, b in outputs)


@pytest.mark.parametrize("name", ["ginio-rs"])
def test_a_dropped_nonlinearity_is_found_by_its_dead_parameters(
    config: AnyConfig, windows: torch.Tensor
) -> None:
    """The defect that equivariance cannot reveal: computing a nonlinearity and returning x."""
    network = config.build().double()
    network.stem[2].forward = lambda x: x
    LikelihoodLoss()(network, windows, torch.randn(len(windows), 3).double()).backward()
    dead = [n for n, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    assert dead == ["stem.2.direction.weight"]


def test_a_row_of_a_batch_is_a_batch_of_one(
    name: str, dtype: torch.dtype, trained: nn.Module, windows: torch.Tensor
) -> None:
    network, windows = trained.to(dtype), windows.to(dtype)
    # Batch normalisation of lengths blows rounding up by a factor of hundreds.
    tolerance = {torch.float32: 1e-4, torch.float64: 1e-12}[dtype] * (100 if "paper" in name else 1)
    with torch.no_grad():
        batch, single = network(windows), network(windows[3:4])
    for together, alone in zip(batch, single, strict=True):
        assert (together[3] - alone[0]).norm() <= tolerance * together[3].norm()


def test_dtype_is_kept(dtype: torch.dtype, trained: nn.Module, windows: torch.Tensor) -> None:
    with torch.no_grad():
        outputs = trained.to(dtype)(windows.to(dtype))
    assert {o.dtype for o in outputs} == {dtype}


def test_evaluation_is_deterministic_and_changes_nothing(
    trained: nn.Module, windows: torch.Tensor
) -> None:
    network = trained.double()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    with torch.no_grad():
        first, second = network(windows), network(windows)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())


def test_axes_are_orthonormal(trained: nn.Module, windows: torch.Tensor) -> None:
    with torch.no_grad():
        _, axes, _ = trained.double()(windows)
    assert torch.allclose(axes.mT @ axes, torch.eye(3).double().expand_as(axes), atol=1e-12)


def test_a_run_directory_holds_it(config: AnyConfig, trained: nn.Module, tmp_path: Path) -> None:
    save_run(tmp_path, Card(network=config), trained)
    run = load_run(tmp_path)
    assert run.card.network == config
    found = run.network.state_dict()
    assert all(torch.equal(v, found[k]) for k, v in trained.state_dict().items())


@pytest.mark.bare
def test_features_of_another_shape_are_refused(config: AnyConfig, trained: nn.Module) -> None:
    c, t = config.channels, config.window
    for shape in [(1, 3 * c, t), (1, c, 3, t - 1), (1, c + 1, 3, t), (1, c, t, 3)]:
        expected = rf"\(batch, {c}, 3, {t}\); found {re.escape(str(shape))}"
        with pytest.raises(ValueError, match=expected):
            trained(torch.zeros(shape))


@pytest.mark.bare
def test_integer_features_are_refused(config: AnyConfig, trained: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"floating point; found torch\.int64"):
        trained(torch.zeros(1, config.channels, 3, config.window, dtype=torch.int64))
