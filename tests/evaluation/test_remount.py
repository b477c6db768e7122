import math
from dataclasses import replace

import pytest
import torch
from strategies import assert_near, assert_rotations
from tiny_runs import TINY, TINY_RESNET, make_run

from ginio.core import Quantity
from ginio.core.interfaces import Symmetry
from ginio.core.recording import Recording
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed, fly_one
from ginio.evaluation.remount import Mounting, Row, Track, describe, mountings, reading, track
from ginio.models import TemporalConfig
from ginio.runtime.checkpoint import Run

MOUNTINGS = mountings(seed=0)


@pytest.fixture(scope="module")
def flight() -> Recording:
    config = QuadrotorConfig(shapes=(Shape.STAR,), speeds=(Speed.FAST,), duration_s=15.0)
    return fly_one(config, 0, seed=8)


@pytest.fixture(scope="module")
def equivariant(flight: Recording) -> list[Track]:
    run = make_run(TINY)
    return [track(run, flight, mounting.R_ms) for mounting in MOUNTINGS]


@pytest.fixture(scope="module")
def ordinary(flight: Recording) -> list[Track]:
    run = make_run(TINY_RESNET)
    return [track(run, flight, mounting.R_ms) for mounting in MOUNTINGS]


def test_gravity_lies_where_a_mounting_says(flight: Recording) -> None:
    for mounting, axis in zip(MOUNTINGS[:3], "zxy", strict=True):
        at_rest = flight.remounted(mounting.R_ms).imu.acc_s[:100].mean(0)
        along = torch.eye(3)["xyz".index(axis)]
        assert mounting.name in {"as recorded", f"gravity along {axis}"}
        assert_near(at_rest, 9.81 * along, 0.8)


def test_mountings_are_rotations_and_the_last_is_random() -> None:
    others = mountings(seed=1)
    assert len({mounting.name for mounting in MOUNTINGS}) == len(MOUNTINGS) == 4
    assert_rotations(torch.stack([mounting.R_ms for mounting in MOUNTINGS]), 1e-6)
    assert torch.equal(MOUNTINGS[0].R_ms, torch.eye(3))
    assert all(torch.equal(a.R_ms, b.R_ms) for a, b in zip(MOUNTINGS[:3], others[:3], strict=True))
    assert not torch.allclose(MOUNTINGS[3].R_ms, others[3].R_ms, atol=0.1)
    assert torch.equal(MOUNTINGS[3].R_ms, mountings(seed=0)[3].R_ms)
    cosine = 0.5 * (float(MOUNTINGS[3].R_ms.trace()) - 1)
    assert f"{math.degrees(math.acos(cosine)):.0f}°" in MOUNTINGS[3].description


def test_an_equivariant_network_answers_the_same_on_every_mounting(
    equivariant: list[Track],
) -> None:
    first = equivariant[0]
    for other in equivariant[1:]:
        assert other.errors == pytest.approx(first.errors, rel=1e-3, abs=1e-3)
        assert_near(other.odometry.p_w, first.odometry.p_w, 1e-3)
        assert_near(other.velocity_std_w(), first.velocity_std_w(), 1e-3)
        assert_near(other.position_error(), first.position_error(), 1e-3)


def test_an_ordinary_network_does_not(ordinary: list[Track]) -> None:
    paths = [of_mounting.odometry.p_w for of_mounting in ordinary]
    errors = [of_mounting.errors["ate_origin"] for of_mounting in ordinary]
    assert all(float((path - paths[0]).abs().max()) > 0.1 for path in paths[1:])
    assert all(abs(error - errors[0]) > 1e-2 for error in errors[1:])


def test_the_truth_does_not_turn(ordinary: list[Track]) -> None:
    first = ordinary[0]
    for other in ordinary[1:]:
        assert torch.equal(other.p_true_w, first.p_true_w)
        assert torch.equal(other.v_true_w, first.v_true_w)
        assert other.standing_still() == pytest.approx(first.standing_still())


def test_what_a_track_says_of_itself(equivariant: list[Track]) -> None:
    shown = equivariant[0]
    odometry, sigma = shown.odometry, shown.odometry.measurement.covariance.matrix()
    assert_near(odometry.p_w[0], shown.p_true_w[0], 1e-6)
    assert float(shown.position_error()[0]) == pytest.approx(0, abs=1e-9)
    assert_near(shown.velocity_error_w(), odometry.measurement.mean - shown.v_true_w, 1e-6)
    assert_near(shown.velocity_std_w().square(), sigma.diagonal(dim1=-2, dim2=-1), 1e-6)
    centred = shown.p_true_w - shown.p_true_w.mean(0)
    still = float(centred.square().sum(-1).mean().sqrt())
    assert shown.standing_still() == pytest.approx(still, rel=1e-6)
    inside = shown.velocity_error_w().abs() <= 2 * shown.velocity_std_w()
    assert shown.within_2_std() == pytest.approx(float(inside.double().mean()))


def test_only_velocities_can_be_tracked(flight: Recording) -> None:
    run = make_run(TINY)
    other = Run(replace(run.card, quantity=Quantity.DISPLACEMENT), run.network)
    with pytest.raises(ValueError, match="network of velocity; found displacement"):
        track(other, flight, torch.eye(3))


def told(shown: Track, own: list[float], other: list[float]) -> str:
    rows = [
        Row(
            Mounting("m", "", torch.eye(3)),
            {
                "ours": replace(shown, errors={"ate_se3": a}),
                "theirs": replace(shown, errors={"ate_se3": b}),
            },
        )
        for a, b in zip(own, other, strict=True)
    ]
    return reading(rows, label="ours", baseline="theirs").replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("changed", "length"),
    [(4e-7, "0.40 µm"), (3e-5, "30 µm"), (2e-3, "2.0 mm"), (0.5, "0.50 m"), (12.3, "12 m")],
)
def test_the_reading_has_suitable_units(
    equivariant: list[Track], changed: float, length: str
) -> None:
    sentence = told(equivariant[0], [1.0, 1.0 + changed, 1.0], [0.5, 2.0, 30.0])
    assert sentence.startswith(f"Turning the sensor changes ours's error by {length} at most;")
    assert "theirs's goes from 0.50 m to between 2.0 m and 30 m" in sentence


def test_a_network_is_described_as_it_declares_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    both = describe(make_run(TINY))
    mean = describe(make_run(replace(TINY, covariance="diagonal")))
    none = describe(make_run(TINY_RESNET))
    assert "answer and its uncertainty turn" in both
    assert "though not its uncertainty" in mean
    assert "ordinary" in none
    monkeypatch.setattr(TemporalConfig, "mean_symmetry", Symmetry.O2)
    assert "about the vertical only" in describe(make_run(TINY))


def test_the_reading_names_one_length_once(equivariant: list[Track]) -> None:
    sentence = told(equivariant[0], [1.0, 1.0, 1.0], [0.5, 1.003, 1.007])
    assert "theirs's goes from 0.50 m to 1.0 m, where" in sentence
