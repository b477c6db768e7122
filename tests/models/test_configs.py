from collections.abc import Callable

import pytest
import torch

from ginio.models import AnyConfig, RecurrentConfig, ResNet1dConfig, TemporalConfig


@pytest.mark.bare
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TemporalConfig(window=0), "window must be at least 1 sample; found 0"),
        (lambda: TemporalConfig(groups=()), r"groups must list .* found \(\)"),
        (lambda: ResNet1dConfig(groups=((64, 0),)), r"found \(\(64, 0\),\)"),
        (lambda: ResNet1dConfig(dropout=1.0), r"dropout must be in \[0, 1\); found 1\.0"),
        (
            lambda: TemporalConfig(norm="bach"),
            "norm must be one of scale, layer, batch; found 'bach'",
        ),
        (lambda: TemporalConfig(covariance="full"), "one of diagonal, spectral; found 'full'"),
        (
            lambda: RecurrentConfig(is_causal=True, has_departures=True),
            "a causal network cannot have departures: their mean is over all time",
        ),
    ],
)
def test_a_config_without_sense_is_refused(make: Callable[[], AnyConfig], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("window", [50, 100, 199, 201, 400])
@pytest.mark.parametrize(
    "build",
    [
        lambda window: TemporalConfig(window=window, groups=((8, 1), (12, 1), (16, 1))),
        lambda window: ResNet1dConfig(window=window, groups=((8, 1), (16, 2)), head_hidden=16),
    ],
)
def test_heads_fit_any_window(build: Callable[[int], AnyConfig], window: int) -> None:
    network = build(window).build().eval()
    mean, axes, log_std = network(torch.randn(2, 2, 3, window))
    assert (mean.shape, axes.shape, log_std.shape) == ((2, 3), (2, 3, 3), (2, 3))
