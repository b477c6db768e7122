"""Tilt and time offset, planted and found again, and on the real flights."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import pytest
import torch

from ginio.core.recording import Recording, Trajectory
from ginio.data import correction, synthetic
from ginio.data.readers.nanobench import Flight
from ginio.data.sensor_errors import SensorErrors
from ginio.data.sources import open_source
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed
from ginio.geometry import so3

Flights = Mapping[str, tuple[Flight, Recording | None]]
Qa = Mapping[str, Mapping[str, str]]


@pytest.fixture(scope="module")
def flight() -> Recording:
    config = QuadrotorConfig(
        shapes=(Shape.STAR,), speeds=(Speed.MEDIUM,), errors=SensorErrors.none()
    )
    return synthetic.fly_one(config, 0, seed=4)


def with_truth(recording: Recording, truth: Trajectory) -> Recording:
    return replace(recording, truth=truth)


def test_a_healthy_flight_needs_no_correction(flight: Recording) -> None:
    found = correction.estimate(flight)
    assert found.tilt_deg == pytest.approx(0, abs=0.05)
    assert found.lag_s == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("tilt_deg", [0.5, 4.0])
def test_a_tilt_is_found_and_taken_away(flight: Recording, tilt_deg: float) -> None:
    tilt = so3.exp(math.radians(tilt_deg) * torch.tensor([0.6, -0.8, 0.0]))
    seen = with_truth(flight, replace(flight.truth, R_ws=flight.truth.R_ws @ tilt))
    found = correction.estimate(seen)
    assert found.tilt_deg == pytest.approx(tilt_deg, abs=0.05)
    mended = correction.apply(seen, found)
    left = so3.geodesic_angle(mended.truth.R_ws, flight.truth.R_ws)
    assert float(left.max()) < math.radians(0.1)


@pytest.mark.parametrize("rows", [-3, 2, 6])
def test_a_late_imu_is_found_and_waited_for(flight: Recording, rows: int) -> None:
    step = float(flight.imu.t.diff().median())
    rolled = replace(
        flight.imu, acc_s=flight.imu.acc_s.roll(rows, 0), gyr_s=flight.imu.gyr_s.roll(rows, 0)
    )
    seen = replace(flight, imu=rolled)
    found = correction.estimate(seen)
    assert found.lag_s == pytest.approx(rows * step, abs=1.5e-3)
    mended = correction.apply(seen, found)
    inner = slice(50, -50)
    error = (mended.truth.p_w.roll(-rows, 0) - flight.truth.p_w)[inner].norm(dim=1)
    assert float(error.max()) < 5e-3


def test_what_a_recording_does_not_tell_is_left(flight: Recording) -> None:
    """It starts in the air and hardly turns."""
    noise = torch.randn(flight.imu.gyr_s.shape, generator=torch.Generator().manual_seed(0))
    seen = replace(flight, imu=replace(flight.imu, gyr_s=0.2 + noise))
    found = correction.estimate(seen)
    assert found == correction.Correction(None, None)
    assert found.tilt_deg is None
    assert correction.apply(seen, found) is not seen
    assert torch.equal(correction.apply(seen, found).truth.R_ws, seen.truth.R_ws)


def test_a_source_says_which_truth_it_gives(
    monkeypatch: pytest.MonkeyPatch, flight: Recording
) -> None:
    tilt = so3.exp(torch.tensor([0.05, 0.0, 0.0]))
    seen = with_truth(flight, replace(flight.truth, R_ws=flight.truth.R_ws @ tilt))
    monkeypatch.setattr(synthetic, "fly", lambda *_, **__: [seen])

    def attitude(truth: correction.Truth) -> torch.Tensor:
        source = open_source("synthetic-quadrotor", split="", decimate_by=1, truth=truth)
        return source.corpora["test"].R_ws

    assert torch.equal(attitude("published"), seen.truth.R_ws)
    left = so3.geodesic_angle(attitude("corrected"), flight.truth.R_ws)
    assert float(left.max()) < math.radians(0.1)


def test_real_flights_agree_with_an_independent_inspection(
    nanobench_flights: Flights, nanobench_qa: Qa
) -> None:
    found = {
        name: correction.estimate(recording)
        for name, (_, recording) in nanobench_flights.items()
        if recording is not None
    }
    tilts = [
        abs(c.tilt_deg - float(nanobench_qa[name]["vicon_imu_tilt_misalign_deg"]))
        for name, c in found.items()
        if c.tilt_deg is not None
    ]
    assert len(tilts) >= 65
    assert max(tilts) < 0.3
    lags = [
        abs(1e3 * c.lag_s - float(nanobench_qa[name]["gyro_lag_ms"]))
        for name, c in found.items()
        if c.lag_s is not None and float(nanobench_qa[name]["gyro_corr"]) > 0.75
    ]
    assert len(lags) >= 30
    # Lags wander by 30 ms within a flight, so that two estimates of one differ by a few.
    assert sorted(lags)[len(lags) // 2] < 2
    assert max(chain(lags, [0])) < 15
