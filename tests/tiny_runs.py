"""Run directories of networks too small to be good, with fresh weights."""

from pathlib import Path

import torch

from ginio.core import Quantity, Representation
from ginio.models import AnyConfig, ResNet1dConfig, TemporalConfig
from ginio.runtime.checkpoint import Card, Run, save_run

TINY = TemporalConfig(window=16, groups=((4, 1),), norm="layer", head_narrow=4, head_hidden=8)
TINY_RESNET = ResNet1dConfig(
    window=16, stem_channels=8, groups=((8, 1),), head_narrow=4, head_hidden=8
)


def make_run(network: AnyConfig, /, **provenance: object) -> Run:
    torch.manual_seed(1)
    card = Card(
        network=network,
        representation=Representation.LAST,
        quantity=Quantity.VELOCITY,
        rate_hz=25.0,
        provenance=provenance,
    )
    return Run(card, network.build().eval())


def save(directory: Path, network: AnyConfig, /, **provenance: object) -> Path:
    run = make_run(network, **provenance)
    save_run(directory, run.card, run.network)
    return directory
