"""Every network goes through the compiler and the exporter whole."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from ginio.models import AnyConfig
from ginio.presets import NETWORKS

pytestmark = pytest.mark.bare

# One network for each way of computing. IMUNet and RoNIN are made of ResNet1D's layers; AirIO is
# left out because the compiler breaks its graph at torch's own GRU.
COMPILED = [n for n in NETWORKS if n.startswith(("ginio-r", "resnet"))]
COMPILED += ["ginio-a-reduced", "ginio-a-causal", "ginio-e", "eqnio-o2"]


@pytest.fixture(params=COMPILED)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def config(name: str, config: AnyConfig) -> AnyConfig:
    """Recurrent networks give few outputs here: every step is written out again in the graph."""
    return replace(config, window=28) if name.startswith("ginio-a") else config


def assert_same(
    found: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...], tolerance: float
) -> None:
    for a, b in zip(found, expected, strict=True):
        assert (a - b).norm() <= tolerance * b.norm()


def test_torch_export_at_any_batch(trained: nn.Module, windows: torch.Tensor) -> None:
    network = trained.double()
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(network, (windows[:4],), dynamic_shapes=({0: batch},))
    with torch.no_grad():
        assert_same(program.module()(windows), network(windows), 1e-9)
        assert_same(program.module()(windows[:1]), network(windows[:1]), 1e-9)


def test_torch_compile_without_a_graph_break(trained: nn.Module, windows: torch.Tensor) -> None:
    network, windows = trained.float(), windows.float()
    torch._dynamo.reset()
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert_same(compiled(windows), network(windows), 1e-3)


def test_torch_compile_of_a_training_step(trained: nn.Module, windows: torch.Tensor) -> None:
    network = trained.double().train()
    torch._dynamo.reset()
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    torch.manual_seed(5)
    mean, _, log_std = compiled(windows)
    (mean.square().sum() + log_std.square().sum()).backward()
    missing = [n for n, p in network.named_parameters() if p.grad is None]
    assert [n for n in missing if not n.startswith("covariance_vectors")] == []


@pytest.mark.parametrize("name", ["ginio-rs"])
def test_inductor_compiles_ginio(trained: nn.Module, windows: torch.Tensor) -> None:
    network, windows = trained.float(), windows.float()
    torch._dynamo.reset()
    compiled = torch.compile(network, fullgraph=True)
    with torch.no_grad():
        assert_same(compiled(windows), network(windows), 1e-4)
