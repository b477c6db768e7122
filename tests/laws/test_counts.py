"""Parameters and multiply-accumulates of the paper's tables, to the last one."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from ginio.metrics.complexity import measure
from ginio.presets import NETWORKS


@pytest.mark.parametrize(
    ("preset", "parameters", "paper_macs"),
    [
        ("resnet1d", 5_424_646, 39_437_312),
        ("ginio-rd-paper", 571_872, 17_813_152),
        ("ginio-rs-paper", 802_661, 18_936_925),
        ("eqnio-o2", 6_020_230, 206_775_040),
        ("eqnio-so2", 8_884_870, 1_127_848_960),
        ("imunet", 3_661_618, 18_838_240),
        ("ronin", 4_634_882, 38_252_032),
    ],
)
def test_counts_are_exact(preset: str, parameters: int, paper_macs: int) -> None:
    network = NETWORKS[preset].build()
    cost = measure(network, torch.randn(1, 2, 3, 200))
    assert (cost.parameters, cost.paper_macs) == (parameters, paper_macs)
    assert cost.operations >= 2 * cost.paper_macs - 2_000_000
    assert network.training


def test_the_default_is_no_larger_than_the_paper() -> None:
    for suffix in ("rd", "rs"):
        ours, paper = (NETWORKS[f"ginio-{suffix}{tail}"].build() for tail in ("", "-paper"))
        assert sum(p.numel() for p in ours.parameters()) <= sum(
            p.numel() for p in paper.parameters()
        )


@pytest.mark.parametrize(
    ("preset", "parameters"), [("airio", 330_598), ("airio-attitude", 387_014)]
)
def test_parameters_are_exact(preset: str, parameters: int) -> None:
    assert sum(p.numel() for p in NETWORKS[preset].build().parameters()) == parameters


@pytest.mark.parametrize(
    ("preset", "printed"),
    [
        ("ginio-a", 273e3),
        ("ginio-a-reduced", 45e3),
        ("ginio-a-attitude", 45e3),
        ("ginio-a-reduced-paper", 45e3),
        ("ginio-rd", 0.57e6),
        ("ginio-rs", 0.80e6),
        ("ginio-e", 6.03e6),
    ],
)
def test_sizes_are_the_printed_ones_where_the_paper_gives_no_widths(
    preset: str, printed: float
) -> None:
    found = sum(p.numel() for p in NETWORKS[preset].build().parameters())
    assert found == pytest.approx(printed, rel=0.01)


class Whole(nn.Module):
    """A recurrent network that answers for all of a sequence."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.network.sequence(features)


def test_airio_costs_what_its_layers_do_over_a_sequence() -> None:
    """The published count, 37.6M, has the element-wise work of the GRUs in it."""
    network = replace(NETWORKS["airio"], window=1000).build()
    cost = measure(Whole(network), torch.randn(1, 2, 3, 1000))
    outputs, thirds = 112, 334
    convolutions = 7 * (6 * 32 * thirds + 32 * 64 * outputs)
    norms = 4 * (32 * thirds + 64 * outputs)
    gru1, gru2 = (2 * 3 * h * (c + h) for c, h in ((64, 64), (128, 128)))
    decoders = 2 * (256 * 128 + 128 * 3)
    assert cost.paper_macs == convolutions + norms + outputs * (gru1 + gru2 + decoders)
    assert cost.paper_macs == pytest.approx(37.636e6, rel=0.02)
