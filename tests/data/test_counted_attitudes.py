"""Attitudes that the gyroscope alone counts, and windows aligned by them."""

from dataclasses import replace

import pytest
import torch

from ginio.core import Quantity
from ginio.core.recording import Recording
from ginio.data import synthetic
from ginio.data.augment import AugmentConfig, disturb
from ginio.data.corpus import Corpus, decimate
from ginio.data.sensor_errors import SensorErrors
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed
from ginio.data.windows import AttitudeSource, WindowSet
from ginio.geometry import so3

LENGTH = 100


@pytest.fixture(scope="module")
def flight() -> Recording:
    config = QuadrotorConfig(
        shapes=(Shape.TREFOIL,), speeds=(Speed.MEDIUM,), errors=SensorErrors.none()
    )
    return synthetic.fly_one(config, 0, seed=5)


@pytest.fixture(scope="module")
def windows(flight: Recording) -> WindowSet:
    corpus = Corpus.join(decimate([flight], 4))
    return WindowSet(corpus, LENGTH, Quantity.VELOCITY, AttitudeSource.GYRO_WITHIN)


def relative(R_ws: torch.Tensor) -> torch.Tensor:
    return R_ws[:1].mT @ R_ws


def test_a_perfect_gyroscope_counts_the_attitude(flight: Recording) -> None:
    error = so3.geodesic_angle(flight.counted_attitudes(), relative(flight.truth.R_ws))
    assert float(error.max()) < 2e-3


def test_a_count_survives_that_samples_are_left_out(flight: Recording) -> None:
    (less,) = decimate([flight], 4)
    assert torch.equal(less.counted_attitudes(), flight.counted_attitudes()[2::4])
    recounted = replace(less, counted_R_0s=None).counted_attitudes()
    kept = relative(less.counted_attitudes())
    assert float(so3.geodesic_angle(recounted, kept).max()) > 1e-3


def test_a_remounted_gyroscope_counts_the_remounted_attitude(flight: Recording) -> None:
    R_ms = so3.random(1, generator=torch.Generator().manual_seed(1))[0]
    (less,) = decimate([flight], 4)
    for recording in (flight, less):
        found = recording.remounted(R_ms).counted_attitudes()
        expected = R_ms @ recording.counted_attitudes() @ R_ms.mT
        assert float(so3.geodesic_angle(found, expected).max()) < 1e-3
    found = Corpus.join([less]).remounted(R_ms).turned_R_0s
    assert torch.equal(found, Corpus.join([less.remounted(R_ms)]).turned_R_0s)


def test_windows_end_in_the_true_attitude_and_count_back_from_it(windows: WindowSet) -> None:
    last = torch.tensor([300, 500, 700])
    found, truth = windows.windows(last), windows.corpus.R_ws[windows.index(last)]
    assert float(so3.geodesic_angle(found.R_ws[:, -1], truth[:, -1]).max()) < 1e-5
    counted = windows.corpus.turned_R_0s[windows.index(last)]
    within = so3.geodesic_angle(found.R_ws[:, -1:].mT @ found.R_ws, counted[:, -1:].mT @ counted)
    assert float(within.max()) < 1e-3
    assert torch.equal(found.gyr_s, windows.corpus.gyr_s[windows.index(last)])


def test_answers_are_turned_by_the_truth(windows: WindowSet) -> None:
    assert windows.attitudes_w() is windows.corpus.R_ws
    aboard = replace(windows, attitude=AttitudeSource.ONBOARD)
    assert aboard.attitudes_w() is windows.corpus.onboard_R_ws


def test_a_drift_is_what_a_count_with_that_bias_gives(windows: WindowSet) -> None:
    last = torch.tensor([300, 500, 700])
    felt = windows.windows(last)
    config = AugmentConfig(drift_gyr_radps=0.02)
    found = disturb(felt, config, torch.Generator().manual_seed(0), step_s=windows.step_s)
    bias_s = found.gyr_s - felt.gyr_s
    assert float(bias_s.std(dim=1).max()) < 1e-6
    assert float(bias_s.abs().max()) > 0.005
    turns = so3.exp(windows.step_s * 0.5 * (found.gyr_s[:, 1:] + found.gyr_s[:, :-1]).double())
    plain = so3.exp(windows.step_s * 0.5 * (felt.gyr_s[:, 1:] + felt.gyr_s[:, :-1]).double())
    R_biased, R_plain = torch.eye(3).double(), torch.eye(3).double()
    for k in range(LENGTH - 1):
        R_biased, R_plain = R_biased @ turns[:, k], R_plain @ plain[:, k]
    first, end = found.R_ws[:, 0].double(), found.R_ws[:, -1].double()
    drifted = (first.mT @ end) @ (felt.R_ws[:, 0].mT @ felt.R_ws[:, -1]).double().mT
    expected = R_biased @ R_plain.mT
    size = so3.log(expected).norm(dim=-1)
    assert float(size.min()) > 0.01
    assert float((so3.log(drifted) - so3.log(expected)).norm(dim=-1).max()) < 0.1 * float(
        size.max()
    )
    assert torch.equal(found.acc_s, felt.acc_s)


def test_a_drift_needs_to_know_the_time(windows: WindowSet) -> None:
    felt = windows.windows(torch.tensor([300]))
    with pytest.raises(ValueError, match="step_s"):
        disturb(felt, AugmentConfig(drift_gyr_radps=0.02), torch.Generator())
