"""Steps replayed from a CUDA graph are the steps that Python launches."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_run import make_trainer

from ginio.data.corpus import Corpus
from ginio.models import AnyConfig, RecurrentConfig, ResNet1dConfig
from ginio.training.config import TrainConfig

needs_cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="CUDA graphs are recorded on a CUDA device; found none"
)
SMALL_RESNET = ResNet1dConfig(
    window=32, groups=((8, 1),), head_narrow=4, head_hidden=8, dropout=0.0
)
SMALL_RECURRENT = RecurrentConfig(window=32, encoder=(4, 6), hidden=(4,), decoder=4)


@needs_cuda
@pytest.mark.parametrize("network", [None, SMALL_RESNET, SMALL_RECURRENT])
def test_replayed_steps_are_launched_ones(
    tmp_path: Path, config: TrainConfig, corpus: Corpus, network: AnyConfig | None
) -> None:
    config = replace(config, device="cuda", network=network or replace(config.network, dropout=0.0))
    losses = {}
    for is_captured in (False, True):
        run = replace(config, is_captured=is_captured)
        trainer = make_trainer(run, corpus.to("cuda"), tmp_path / str(is_captured))
        losses[is_captured] = [line.loss for line in trainer.run()]
        losses[is_captured] += [float(trainer.take_step(step)) for step in range(1, 9)]
    assert losses[True] == pytest.approx(losses[False], rel=1e-3, abs=1e-4)


@needs_cuda
def test_a_replayed_step_draws_its_own_dropout(
    tmp_path: Path, config: TrainConfig, corpus: Corpus
) -> None:
    config = replace(config, device="cuda", is_captured=True, learning_rate=0.0)
    trainer = make_trainer(config, corpus.to("cuda"), tmp_path)
    batch = trainer.batch(1)
    losses = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        losses.append(float(trainer.loss_and_gradients(trainer.warm_up, *batch)))
    assert losses[0] == losses[2] != losses[1]


def test_capturing_is_refused_where_there_is_no_graph(config: TrainConfig) -> None:
    with pytest.raises(ValueError, match="only steps on a CUDA device are captured; found 'cpu'"):
        replace(config, is_captured=True)
