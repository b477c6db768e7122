"""What every network must do beside its symmetry."""

import pytest
import torch
from torch import nn

from ginio.core.interfaces import Network, NetworkConfig
from ginio.models import AnyConfig
from ginio.training.losses import LikelihoodLoss


def test_config_and_network_keep_their_protocols(config: AnyConfig, trained: nn.Module) -> None:
    assert isinstance(config, NetworkConfig)
    assert isinstance(trained, Network)


def test_every_parameter_receives_a_gradient(
    config: AnyConfig, trained: nn.Module, windows: torch.Tensor
) -> None:
    network = trained.double().train()
    LikelihoodLoss()(network, windows, torch.randn(len(windows), 3).double()).backward()
    dead = [n for n, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    assert dead == []


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


@pytest.mark.bare
@pytest.mark.parametrize("shape", [(1, 6, 200), (1, 2, 3, 199), (1, 3, 3, 200), (1, 2, 200, 3)])
def test_features_of_another_shape_are_refused(trained: nn.Module, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"\(batch, 2, 3, 200\); found \(1, "):
        trained(torch.zeros(shape))


@pytest.mark.bare
def test_integer_features_are_refused(trained: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"floating point; found torch\.int64"):
        trained(torch.zeros(1, 2, 3, 200, dtype=torch.int64))
