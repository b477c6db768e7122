import pytest
import torch
from torch import Tensor, nn

from ginio.metrics.complexity import measure

CHANNELS, TIME, WIDTH, KERNEL, OUT = 2, 20, 8, 5, 3

CONV_MACS = WIDTH * (3 * CHANNELS) * KERNEL * TIME
LINEAR_MACS = WIDTH * OUT
NORM_ELEMENTS = WIDTH * TIME
PARAMETERS = (3 * CHANNELS * KERNEL + 1) * WIDTH + 2 * WIDTH + (WIDTH + 1) * OUT


class Toy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3 * CHANNELS, WIDTH, KERNEL, padding=KERNEL // 2)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.linear = nn.Linear(WIDTH, OUT)

    def forward(self, features: Tensor) -> Tensor:
        hidden = torch.relu(self.norm(self.conv(features.flatten(1, 2))))
        return self.linear(hidden.mean(-1))


class Gram(nn.Module):
    """A product of features with themselves: work, but no layer's."""

    def forward(self, features: Tensor) -> Tensor:
        flat = features.flatten(1, 2)
        return torch.bmm(flat, flat.mT)


class Recurrent(nn.Module):
    def __init__(self, layer: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer = layer(3 * CHANNELS, WIDTH, batch_first=True)

    def forward(self, features: Tensor) -> Tensor:
        return self.layer(features.flatten(1, 2).mT)[0]


def window() -> Tensor:
    return torch.randn(1, CHANNELS, 3, TIME)


def test_the_papers_count_is_layers_and_four_for_each_normalised_element() -> None:
    assert measure(Toy(), window()).paper_macs == CONV_MACS + LINEAR_MACS + 4 * NORM_ELEMENTS


def test_operations_count_everything() -> None:
    layers = 2 * (CONV_MACS + LINEAR_MACS)
    normalise, rectify, pool = 2 * NORM_ELEMENTS, NORM_ELEMENTS, NORM_ELEMENTS
    found = measure(Toy(), window()).operations
    assert found == layers + normalise + rectify + pool
    assert found > 2 * (CONV_MACS + LINEAR_MACS)


def test_parameters_are_those_of_the_layers() -> None:
    assert measure(Toy(), window()).parameters == PARAMETERS


def test_products_of_features_are_operations_but_free_in_the_papers_count() -> None:
    found = measure(Gram(), window())
    assert found.paper_macs == 0
    assert found.operations == 2 * (3 * CHANNELS) ** 2 * TIME


@pytest.mark.parametrize(("layer", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
def test_recurrent_layers_cost_their_matrix_products(layer: type[nn.RNNBase], gates: int) -> None:
    found = measure(Recurrent(layer), window())
    macs = gates * WIDTH * (3 * CHANNELS + WIDTH) * TIME
    assert found.paper_macs == macs
    assert found.operations > 2 * macs


def test_measuring_changes_nothing() -> None:
    network = Toy().train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    measure(network, window())
    assert network.training
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(p.grad is None for p in network.parameters())


def test_an_evaluating_network_stays_so() -> None:
    network = Toy().eval()
    measure(network, window())
    assert not network.training


def test_a_frozen_layer_of_a_training_network_stays_frozen() -> None:
    network = Toy().train()
    network.norm.eval()
    measure(network, window())
    assert network.training
    assert not network.norm.training
