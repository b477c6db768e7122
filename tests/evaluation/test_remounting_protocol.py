"""The protocol of a remounted sensor: who is hurt by what."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fake_frontends import anisotropic, perfect, telling
from strategies import assert_near
from tiny_runs import TINY, TINY_RESNET, make_run

from ginio.core import Quantity, Representation
from ginio.core.interfaces import Frontend
from ginio.core.recording import Recording
from ginio.data.export import write_nanobench
from ginio.data.remounting import RemountConfig
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed, fly_one
from ginio.data.table import DataError
from ginio.evaluation.protocols import STANDING_STILL, STRAPDOWN, Score
from ginio.evaluation.remounting import (
    CONDITIONS,
    NOMINAL,
    RANDOM,
    SAME,
    TC1,
    TC2,
    Device,
    RemountingConfig,
    conditions,
    folder_scores,
    mountings,
    remounting_scores,
    trivial_scores,
)
from ginio.runtime.checkpoint import Run

TURNED = RemountingConfig(changes=RemountConfig.rotation_only(), stride=4)
PHYSICAL = RemountingConfig(stride=4)


@pytest.fixture(scope="module")
def flight() -> Recording:
    config = QuadrotorConfig(shapes=(Shape.STAR,), speeds=(Speed.FAST,), duration_s=15.0)
    return fly_one(config, 0, seed=8)


def device(frontend: Frontend, decimate_by: int = 1) -> Device:
    return Device(
        frontend=frontend,
        representation=Representation.BODY,
        window=16,
        decimate_by=decimate_by,
    )


def device_of(run: Run) -> Device:
    return Device(
        frontend=run.frontend(),
        representation=run.card.representation,
        window=run.card.network.window,
        decimate_by=4,
    )


def errors(scores: Sequence[Score], metric: str = "ate_se3") -> dict[str, float]:
    return {s.test: s.metrics[metric] for s in scores}


def test_every_flight_is_scored_under_every_condition(flight: Recording) -> None:
    scores = list(remounting_scores(device(perfect()), [telling(1), telling(2)], TURNED))
    assert [(s.recording, s.test) for s in scores] == [
        (name, condition) for name in ("tumbling_1", "tumbling_2") for condition in CONDITIONS
    ]


def test_a_rotation_alone_does_nothing_to_the_law_and_something_without_it() -> None:
    fair = errors(list(remounting_scores(device(perfect()), [telling(1)], TURNED)))
    assert max(fair.values()) < 1e-5
    unfair = errors(list(remounting_scores(device(anisotropic()), [telling(1)], TURNED)))
    assert unfair[SAME] == pytest.approx(unfair[NOMINAL], abs=1e-6)
    assert len({round(unfair[c], 3) for c in (NOMINAL, TC2, RANDOM)}) == 3


def test_physical_changes_touch_everything_but_the_nominal_flight(flight: Recording) -> None:
    """A remount is more than a rotation: even the law does not make it free."""
    run = make_run(TINY)
    turned, physical = (
        errors(list(remounting_scores(device_of(run), [flight], c)), "velocity_rmse")
        for c in (TURNED, PHYSICAL)
    )
    assert turned[NOMINAL] == physical[NOMINAL]
    for condition in CONDITIONS[1:]:
        assert turned[condition] == pytest.approx(turned[NOMINAL], abs=1e-5)
        assert abs(physical[condition] - turned[condition]) > 1e-6


def test_networks_are_remounted_alike_and_flights_are_not(flight: Recording) -> None:
    once, again = (dict(conditions(flight, 0, PHYSICAL)) for _ in range(2))
    other = dict(conditions(flight, 1, PHYSICAL))
    assert list(once) == list(CONDITIONS)
    for condition in CONDITIONS:
        assert torch.equal(once[condition].imu.acc_s, again[condition].imu.acc_s)
    assert not torch.equal(once[SAME].imu.acc_s, other[SAME].imu.acc_s)
    seeded = dict(conditions(flight, 0, replace(PHYSICAL, seed=1)))
    assert not torch.equal(once[SAME].imu.acc_s, seeded[SAME].imu.acc_s)


def test_gravity_lies_where_the_test_cases_say(flight: Recording) -> None:
    for name, up in ((TC1, [-1.0, 0.0, 0.0]), (TC2, [0.0, 1.0, 0.0])):
        (mounting,) = (m for m in mountings(0, 0) if m.name == name)
        at_rest = flight.remounted(mounting.R_ms).imu.acc_s[:50].mean(0)
        assert_near(at_rest / at_rest.norm(), torch.tensor(up), 0.2)


def test_the_network_of_the_baseline_is_hurt(flight: Recording) -> None:
    found = errors(list(remounting_scores(device_of(make_run(TINY_RESNET)), [flight], TURNED)))
    assert abs(found[TC1] - found[NOMINAL]) > 1e-3


def test_the_normalised_error_is_in_percent_of_the_path() -> None:
    still = trivial_scores([telling(1)], 1, TURNED)[STANDING_STILL][0]
    p_w = telling(1).truth.p_w
    path = float(p_w.diff(dim=0).norm(dim=-1).sum())
    expected = 100 * still.metrics["ate_se3"] / path
    assert still.metrics["normalised_ate"] == pytest.approx(expected)


def test_standing_still_and_strapdown_are_scored_under_every_condition(flight: Recording) -> None:
    found = trivial_scores([flight], 4, PHYSICAL)
    for label in (STANDING_STILL, STRAPDOWN):
        assert [s.test for s in found[label]] == list(CONDITIONS)
    assert len(set(errors(found[STANDING_STILL]).values())) == 1
    assert len(set(errors(found[STRAPDOWN]).values())) > 1


def test_real_recordings_of_several_mountings_are_scored_by_folder(
    flight: Recording, tmp_path: Path
) -> None:
    """A folder for each mounting, as a user would record them."""
    folders: dict[str, Path] = {}
    for condition, recording in conditions(flight, 0, TURNED):
        if condition in {NOMINAL, TC1, TC2}:
            folders[condition] = tmp_path / condition
            write_nanobench(recording, folders[condition], compressed=False)
    fair, unfair = (
        errors(list(folder_scores(device_of(make_run(network)), folders, TURNED)))
        for network in (TINY, TINY_RESNET)
    )
    assert list(fair) == [NOMINAL, TC1, TC2]
    assert fair[TC1] == pytest.approx(fair[NOMINAL], abs=1e-3)
    assert abs(unfair[TC1] - unfair[NOMINAL]) > 1e-3


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no flights; expected files like"):
        list(folder_scores(device(perfect()), {"TC1": tmp_path}, TURNED))


@pytest.mark.parametrize("make", [telling])
def test_displacements_are_not_summed_up(make: Callable[[int], Recording]) -> None:
    frontend = replace(perfect(), quantity=Quantity.DISPLACEMENT)
    with pytest.raises(ValueError, match="sums up velocities"):
        list(remounting_scores(device(frontend), [make(1)], TURNED))
