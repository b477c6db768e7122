"""A belief that is given up saves its memory, and nothing else changes."""

import pytest
import torch

from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.filters.belief import Belief
from ginio.filters.cloning import CloningFilter
from ginio.filters.inekf import InekfConfig
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.start import start_at_truth
from ginio.geometry import so3

RUNS = 3


def started(filter_: CloningFilter) -> Belief:
    torch.manual_seed(0)
    R_ws = so3.random(RUNS, dtype=torch.float64)
    zero = torch.zeros(RUNS, 3, dtype=torch.float64)
    return filter_.clone(filter_.start(start_at_truth(R_ws, zero, zero)), 0)


def turn(filter_: CloningFilter, belief: Belief, *, donate: bool) -> Belief:
    """Some samples and a measurement, half of which is outside the gate."""
    generator = torch.Generator().manual_seed(1)
    samples = torch.randn(RUNS, 10, 6, generator=generator, dtype=torch.float64)
    dt = torch.full((10,), 0.005, dtype=torch.float64)
    moved = filter_.propagate(
        belief, 9.8 + samples[..., :3], samples[..., 3:], dt, name=1, donate=donate
    )
    mean = torch.tensor([[0.0, 0, 0], [50.0, 0, 0], [0, 0, 0]], dtype=torch.float64)
    sigma = Covariance(
        torch.eye(3, dtype=torch.float64).expand(RUNS, 3, 3), torch.full_like(mean, -2.0)
    )
    said = Measurement(mean, sigma, Quantity.DISPLACEMENT)
    after, _ = filter_.update(moved, said, begin=0, end=1, frame=Frame.WORLD, donate=donate)
    return after


@pytest.mark.parametrize("config", [ScekfConfig(clones=4), InekfConfig(clones=4)])
def test_a_donated_belief_gives_the_same_bit_for_bit(config: ScekfConfig | InekfConfig) -> None:
    filter_ = config.build()
    kept = started(filter_)
    before = kept.P.clone()
    expected = turn(filter_, kept, donate=False)
    assert torch.equal(kept.P, before)
    given = started(filter_)
    found = turn(filter_, given, donate=True)
    assert torch.equal(found.P, expected.P)
    assert torch.equal(found.state.p_w, expected.state.p_w)
    assert torch.equal(found.clones.p_w, expected.clones.p_w)
    assert found.P.data_ptr() == given.P.data_ptr()
