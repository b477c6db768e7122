"""Parameters and multiply-accumulates of the paper's tables, to the last one."""

import pytest
import torch

from ginio.metrics.complexity import measure
from ginio.presets import NETWORKS


@pytest.mark.parametrize(
    ("preset", "parameters", "paper_macs"),
    [
        ("resnet1d", 5_424_646, 39_437_312),
        ("ginio-rd-paper", 571_872, 17_813_152),
        ("ginio-rs-paper", 802_661, 18_936_925),
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
