import json
from dataclasses import asdict

import pytest
import torch
from fake_frontends import LOG_STD, Fake, felt_axes, fixed_axes, telling, told

from ginio.core import Quantity, Representation
from ginio.data.corpus import Corpus
from ginio.data.windows import WindowSet
from ginio.evaluation.calibration import LEVELS, SCATTERED, Calibration, calibrate


def calibrated(frontend: Fake, stride: int = 1) -> Calibration:
    windows = WindowSet(Corpus.join([telling(1), telling(2, 300)]), 8, Quantity.VELOCITY)
    return calibrate(frontend, Representation.WORLD, windows, stride)


def test_an_honest_covariance_covers_what_it_says() -> None:
    generator = torch.Generator().manual_seed(0)

    def honest(window: object) -> torch.Tensor:
        v = told(window)  # type: ignore[arg-type]
        return v + LOG_STD.exp() * torch.randn(v.shape, generator=generator).double()

    found = calibrated(Fake(honest, fixed_axes))
    assert found.windows == 500
    for level, covered in zip(found.levels, found.coverage, strict=True):
        assert covered == pytest.approx(level, abs=0.07)


def test_one_that_is_too_small_covers_less_at_every_level() -> None:
    found = calibrated(Fake(lambda w: told(w) + 2 * LOG_STD.exp(), fixed_axes))
    assert all(c <= level for c, level in zip(found.coverage[:-3], LEVELS[:-3], strict=True))


def test_the_likelihood_comes_in_two_parts_of_some_windows() -> None:
    found = calibrated(Fake(lambda w: told(w) + LOG_STD.exp(), fixed_axes))
    assert len(found.mahalanobis) == len(found.log_det) == SCATTERED
    assert found.mahalanobis == pytest.approx([1.5] * SCATTERED)
    assert found.log_det == pytest.approx([float(LOG_STD.sum())] * SCATTERED)
    few = calibrated(Fake(told, felt_axes), stride=10)
    assert len(few.mahalanobis) == few.windows == 50
    assert Calibration.read(json.loads(json.dumps(asdict(few)))) == few
