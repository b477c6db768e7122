"""Errors of the frame: what they do to networks whose answers are known."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from fake_frontends import LOG_STD, Fake, fixed_axes, perfect, round_and_round, telling, told
from strategies import assert_near

from ginio.core import Quantity, Representation
from ginio.core.interfaces import Frontend
from ginio.data.corpus import Corpus
from ginio.data.windows import WindowSet
from ginio.evaluation.frame_errors import (
    ANGLES_DEG,
    PERIOD_S,
    FrameError,
    SweepConfig,
    asked,
    axes_of,
    misaligned,
    sweep,
    tilted,
)
from ginio.evaluation.odometry import run_odometry
from ginio.evaluation.protocols import ProtocolConfig, Score, evaluate
from ginio.geometry import so3

LENGTH = 16
CONFIG = SweepConfig(angles_deg=(20.0,), draws=2, stride=4)
NOMINAL = ProtocolConfig(tests=("ID/ID",), stride=4)
AXIS = torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    torch.manual_seed(0)
    return Corpus.join([telling(1), telling(2, 150)])


def late() -> Fake:
    """An equivariant answer with an error that depends on the whole window."""
    return Fake(lambda w: w.gyr_f.mean(1) + 0.05 * w.acc_f.mean(1), perfect().axes)


def level() -> Fake:
    """Half right along the third axis: symmetric about the vertical, and not otherwise."""
    return Fake(lambda w: told(w) * torch.tensor([1.0, 1.0, 0.5]), fixed_axes)


def scores_of(
    frontend: Frontend, frame: Representation, corpus: Corpus, config: SweepConfig = CONFIG
) -> Sequence[Score]:
    windows = WindowSet(corpus, LENGTH, Quantity.VELOCITY)
    return list(sweep(frontend, frame, windows, config))


def nominal_of(frontend: Frontend, frame: Representation, corpus: Corpus) -> Sequence[Score]:
    windows = WindowSet(corpus, LENGTH, Quantity.VELOCITY)
    return list(evaluate(frontend, frame, windows, NOMINAL))


def test_every_recording_is_scored_under_every_error_in_order(corpus: Corpus) -> None:
    config = SweepConfig(draws=1, stride=30)
    names = [s.test for s in scores_of(perfect(), Representation.LAST, corpus, config)]
    assert names == 2 * [error.name for error in config.errors]
    assert len(config.errors) == 2 * 2 * len(ANGLES_DEG)
    assert names[0] == "gravity constant 3°"
    assert names[-1] == "relative varying 20°"


@pytest.mark.parametrize("frame", Representation)
def test_an_error_of_no_degrees_is_the_nominal_run(frame: Representation, corpus: Corpus) -> None:
    expected = {s.recording: s.metrics for s in nominal_of(late(), frame, corpus)}
    for score in scores_of(late(), frame, corpus, replace(CONFIG, angles_deg=(0.0,))):
        for name, value in score.metrics.items():
            assert value == pytest.approx(expected[score.recording][name], abs=1e-6), name


def test_a_constant_tilt_turns_the_path_of_a_network_with_the_law_and_nothing_else(
    corpus: Corpus,
) -> None:
    """After alignment nothing is left of it; before, all of it is there."""
    config = replace(CONFIG, kinds=("gravity",), courses=("constant",))
    for frame in (Representation.LAST, Representation.WORLD, Representation.BODY):
        expected = {s.recording: s.metrics for s in nominal_of(late(), frame, corpus)}
        for score in scores_of(late(), frame, corpus, config):
            before = expected[score.recording]
            assert score.metrics["ate_se3"] == pytest.approx(before["ate_se3"], abs=1e-6)
            assert score.metrics["ate_se3"] > 0.01
        for score in scores_of(perfect(), frame, corpus, config):
            assert score.metrics["ate_se3"] == pytest.approx(0, abs=1e-5)
            assert score.metrics["ate_origin"] > 0.05


def test_what_knows_the_vertical_only_is_hurt_by_a_tilt(corpus: Corpus) -> None:
    """A network symmetric about gravity answers otherwise when gravity is elsewhere."""
    config = replace(CONFIG, kinds=("gravity",))
    before = {s.recording: s.metrics for s in nominal_of(level(), Representation.GRAVITY, corpus)}
    errors = [
        abs(s.metrics["ate_se3"] - before[s.recording]["ate_se3"])
        for s in scores_of(level(), Representation.GRAVITY, corpus, config)
    ]
    assert min(errors) > 0.005


def test_a_tilt_is_as_large_as_it_says_and_level() -> None:
    corpus = Corpus.join([round_and_round(400)])
    for course in ("constant", "varying"):
        wrong = tilted(corpus, FrameError("gravity", course, 10.0), AXIS)
        phi = so3.log(wrong.R_ws @ corpus.R_ws.mT)
        assert_near(
            so3.length(phi), torch.full((400,), math.radians(10.0), dtype=torch.float64), 1e-12
        )
        assert_near(phi[:, 2], torch.zeros(400).double(), 1e-12)
        half = torch.polar(torch.ones(400).double(), torch.atan2(phi[:, 1], phi[:, 0]))
        goes_round = (half[1:] * half[:-1].conj()).angle()
        rate = 2 * math.pi / PERIOD_S / 25 if course == "varying" else 0.0
        assert_near(goes_round, torch.full((399,), rate, dtype=torch.float64), 1e-9)
        assert torch.equal(wrong.acc_s, corpus.acc_s)


def test_the_way_round_of_a_tilt_is_random() -> None:
    corpus = Corpus.join([round_and_round(400)])
    error = FrameError("gravity", "varying", 10.0)
    both = [
        so3.log(tilted(corpus, error, axis).R_ws @ corpus.R_ws.mT)
        for axis in (AXIS, AXIS * torch.tensor([1.0, 1.0, -1.0]))
    ]
    assert_near(both[0][:, 0], both[1][:, 0], 1e-12)
    assert_near(both[0][:, 1], -both[1][:, 1], 1e-12)


def test_relative_rotations_err_as_told_and_the_last_attitude_stays(corpus: Corpus) -> None:
    window = WindowSet(corpus, LENGTH, Quantity.VELOCITY).windows(torch.tensor([40, 90]))
    exact = window.represent(Representation.LAST)
    for course in ("constant", "varying"):
        wrong = misaligned(window, FrameError("relative", course, 10.0), AXIS)
        assert_near(wrong.R_ws[:, -1], window.R_ws[:, -1], 1e-12)
        R_ls = window.R_ws[:, -1:].mT @ window.R_ws
        D = wrong.R_ws[:, -1:].mT @ wrong.R_ws @ R_ls.mT
        part = (
            torch.linspace(1, 0, LENGTH).double()
            if course == "varying"
            else (torch.arange(16) < 15)
        )
        expected = math.radians(10.0) * part.double().unsqueeze(-1) * AXIS
        assert_near(so3.log(D), expected, 1e-7)
        found = wrong.represent(Representation.LAST)
        assert_near(found.acc_f, so3.rotate(D, exact.acc_f), 1e-9)
        assert_near(found.R_wf, exact.R_wf, 1e-12)


def test_relative_errors_leave_body_windows_as_they_are(corpus: Corpus) -> None:
    config = replace(CONFIG, kinds=("relative",))
    before = {s.recording: s.metrics for s in nominal_of(late(), Representation.BODY, corpus)}
    for score in scores_of(late(), Representation.BODY, corpus, config):
        assert score.metrics["ate_se3"] == pytest.approx(before[score.recording]["ate_se3"])
    after = scores_of(late(), Representation.LAST, corpus, config)
    before = {s.recording: s.metrics for s in nominal_of(late(), Representation.LAST, corpus)}
    assert all(s.metrics["ate_se3"] != before[s.recording]["ate_se3"] for s in after)


def test_errors_grow_with_the_angle(corpus: Corpus) -> None:
    config = replace(CONFIG, angles_deg=(3.0, 20.0), kinds=("relative",), courses=("varying",))
    scores = scores_of(late(), Representation.LAST, corpus, config)
    small, large = (
        sum(s.metrics["velocity_rmse"] for s in scores if s.test == error.name)
        for error in config.errors
    )
    expected = sum(
        s.metrics["velocity_rmse"] for s in nominal_of(late(), Representation.LAST, corpus)
    )
    assert abs(small - expected) < abs(large - expected)


def test_axes_are_the_same_for_every_network_and_others_for_every_flight() -> None:
    config = SweepConfig(draws=50)
    assert torch.equal(axes_of(3, config), axes_of(3, config))
    assert_near(so3.length(axes_of(3, config)), torch.ones(50).double(), 1e-12)
    assert not torch.equal(axes_of(3, config), axes_of(4, config))
    assert not torch.equal(axes_of(3, config), axes_of(3, replace(config, seed=1)))


def test_scores_are_means_over_axes(corpus: Corpus) -> None:
    config = replace(CONFIG, kinds=("relative",), courses=("constant",))
    windows = WindowSet(corpus.part(0), LENGTH, Quantity.VELOCITY)
    last = torch.arange(0, 200, CONFIG.stride)
    errors = []
    for axis in axes_of(0, config):
        question = asked(windows, last, config.errors[0], axis)
        found = run_odometry(late(), question, Representation.LAST)
        v_error = found.measurement.residual(corpus.v_w[last])
        errors.append(float(v_error.square().sum(-1).mean().sqrt()))
    score = scores_of(late(), Representation.LAST, corpus, config)[0]
    assert score.metrics["velocity_rmse"] == pytest.approx(sum(errors) / len(errors))
    assert score.metrics["nll_log_det"] == pytest.approx(float(LOG_STD.sum()))
    assert errors[0] != errors[1]
