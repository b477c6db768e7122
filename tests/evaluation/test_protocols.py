import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import torch
from fake_frontends import (
    LOG_STD,
    Fake,
    anisotropic,
    fixed_axes,
    perfect,
    round_and_round,
    stubborn,
    telling,
    told,
    tumbling,
    vertical,
)
from strategies import assert_near, circling, yaw_matrices

from ginio.core import Quantity, Representation
from ginio.core.interfaces import Frontend
from ginio.data.corpus import Corpus
from ginio.data.windows import AttitudeSource, WindowSet
from ginio.evaluation.protocols import (
    TESTS,
    ProtocolConfig,
    Score,
    evaluate,
    rotations_of,
    trivial_baselines,
)
from ginio.geometry import so3
from ginio.models import ResNet1dConfig, TemporalConfig
from ginio.runtime.frontend import NeuralFrontend

LENGTH = 16
NOMINAL, VECTORS, REMOUNT = TESTS
CONFIG = ProtocolConfig(rotations=3, stride=5)
PATHS = ("ate_se3", "ate_yaw", "ate_origin", "rte_1s", "drift_ratio", "velocity_rmse")
LAWS = ("mean_law_error", "covariance_law_error")
SMALL = TemporalConfig(window=LENGTH, groups=((6, 1),), norm="layer", head_narrow=4, head_hidden=12)
SMALL_RESNET = ResNet1dConfig(window=LENGTH, groups=((8, 1),), head_narrow=4, head_hidden=8)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.join([telling(1), telling(2, 150)])


def scores_of(
    frontend: Frontend,
    frame: Representation,
    corpus: Corpus,
    config: ProtocolConfig = CONFIG,
) -> Sequence[Score]:
    windows = WindowSet(corpus, LENGTH, Quantity.VELOCITY, config.attitude)
    return list(evaluate(frontend, frame, windows, config))


def by_test(scores: Sequence[Score]) -> Mapping[str, Mapping[str, float]]:
    """Metrics of the first recording."""
    first = scores[0].recording
    return {s.test: s.metrics for s in scores if s.recording == first}


def assert_alike(one: Mapping[str, float], other: Mapping[str, float], tol: float) -> None:
    assert set(one) == set(other)
    for name, value in one.items():
        assert value == pytest.approx(other[name], abs=tol), name


# Rows


def test_every_recording_is_scored_under_every_test_in_order(corpus: Corpus) -> None:
    scores = scores_of(perfect(), Representation.LAST, corpus)
    assert [(s.recording, s.test) for s in scores] == [
        (name, test) for name in corpus.names for test in TESTS
    ]
    assert {s.attitude for s in scores} == {"truth"}
    assert {tuple(s.metrics) for s in scores} == {tuple(scores[0].metrics)}
    assert {*PATHS, *LAWS, "nll", "nees", "cov95"} <= set(scores[0].metrics)


def test_only_the_tests_asked_for_are_run(corpus: Corpus) -> None:
    frontend = perfect()
    scores = scores_of(frontend, Representation.LAST, corpus, replace(CONFIG, tests=(NOMINAL,)))
    assert [s.test for s in scores] == [NOMINAL] * 2
    assert len(frontend.asked) == 2


def test_rows_name_the_attitude_they_were_made_with(corpus: Corpus) -> None:
    """An onboard heading that is off costs what a heading costs, and nothing that it does not."""
    made = telling(3)
    R_error = yaw_matrices(torch.tensor([0.3], dtype=torch.float64))[0]
    aboard = Corpus.join([replace(made, onboard_R_ws=R_error @ made.truth.R_ws)])
    config = replace(CONFIG, attitude=AttitudeSource.ONBOARD)
    scores = scores_of(perfect(), Representation.LAST, aboard, config)
    assert {s.attitude for s in scores} == {"onboard"}
    for score in scores:
        assert score.metrics["ate_yaw"] == pytest.approx(0, abs=1e-5)
        assert score.metrics["ate_origin"] > 0.1
        assert score.metrics["velocity_rmse"] > 0.1
        assert score.metrics["mean_law_error"] == pytest.approx(0, abs=1e-5)
    rows = trivial_baselines(aboard, config)
    assert {s.attitude for label in rows for s in rows[label]} == {"onboard"}
    truthful = by_test(scores_of(perfect(), Representation.LAST, aboard))
    assert truthful[NOMINAL]["ate_origin"] == pytest.approx(0, abs=1e-7)


def test_an_onboard_attitude_that_does_not_exist_is_refused(corpus: Corpus) -> None:
    config = replace(CONFIG, attitude=AttitudeSource.ONBOARD)
    with pytest.raises(ValueError, match="'onboard' does not exist"):
        scores_of(perfect(), Representation.BODY, corpus, config)


# Rotations


def test_rotations_are_the_same_whatever_is_evaluated() -> None:
    for recording in (0, 5):
        vectors, remount, again = (
            rotations_of(recording, test, ProtocolConfig()) for test in (VECTORS, REMOUNT, VECTORS)
        )
        assert torch.equal(vectors, remount)
        assert torch.equal(vectors, again)
    fewer = rotations_of(5, VECTORS, ProtocolConfig(rotations=4))
    assert len(fewer) == 4
    assert_near(rotations_of(0, NOMINAL, ProtocolConfig()), torch.eye(3).unsqueeze(0), 0)


def test_rotations_differ_by_recording_and_seed() -> None:
    drawn = [
        rotations_of(recording, VECTORS, ProtocolConfig(seed=seed))
        for recording in range(3)
        for seed in range(3)
    ]
    every = torch.cat(drawn)
    assert len(every.flatten(1).round(decimals=4).unique(dim=0)) == len(every)


def test_rotations_are_uniform() -> None:
    every = torch.cat([rotations_of(i, VECTORS, ProtocolConfig()) for i in range(300)]).double()
    assert_near(every @ every.mT, torch.eye(3).double(), 1e-6)
    assert_near(every.mean(0), torch.zeros(3, 3).double(), 0.06)
    angle = so3.geodesic_angle(every, torch.eye(3).double().expand_as(every))
    assert float(angle.mean()) == pytest.approx(math.pi / 2 + 2 / math.pi, abs=0.06)


@pytest.mark.parametrize("test", [VECTORS, REMOUNT])
def test_two_networks_see_the_same_windows(test: str, corpus: Corpus) -> None:
    asked: list[torch.Tensor] = []
    for frontend in (perfect(), anisotropic()):
        torch.rand(len(asked))
        scores_of(frontend, Representation.LAST, corpus)
        asked.append(torch.cat(frontend.asked))
    every = sum(len(windows_of_recording(corpus, recording)) for recording in range(2))
    assert len(asked[0]) == every * (2 + 2 * CONFIG.rotations)
    assert torch.equal(*asked)


def windows_of_recording(corpus: Corpus, recording: int) -> torch.Tensor:
    rows = corpus.rows(recording)
    return torch.arange(rows.start, rows.stop, CONFIG.stride)


def test_the_two_tests_hand_a_network_other_windows(corpus: Corpus) -> None:
    """Of LFA windows both turn by the rotation; of world windows the remount turns none."""
    R_ms = rotations_of(0, VECTORS, CONFIG).double()
    n = CONFIG.rotations
    for frame, R_remount in (
        (Representation.LAST, R_ms),
        (Representation.BODY, R_ms),
        (Representation.WORLD, torch.eye(3).double().expand(n, 3, 3)),
    ):
        frontend = perfect()
        scores_of(frontend, frame, corpus)
        each = torch.cat(frontend.asked).split(len(windows_of_recording(corpus, 0)))
        nominal, turned, remounted = (
            each[0],
            torch.stack(each[2 : 2 + n]),
            torch.stack(each[2 + n : 2 + 2 * n]),
        )
        assert_near(turned, R_ms[:, None, None] @ nominal, 1e-5)
        assert_near(remounted, R_remount[:, None, None] @ nominal, 1e-5)


# Laws


@pytest.mark.parametrize("frame", Representation)
def test_a_perfect_network_has_no_error_under_any_test(
    frame: Representation, corpus: Corpus
) -> None:
    for score in scores_of(perfect(), frame, corpus):
        for name in (*PATHS, *LAWS[:1], "nees"):
            assert score.metrics[name] == pytest.approx(0, abs=1e-5), (score.test, name)
        assert score.metrics["cov95"] == 1
        assert score.metrics["nll"] == pytest.approx(float(LOG_STD.sum()), abs=1e-5)


@pytest.mark.parametrize("frame", [Representation.BODY, Representation.LAST])
def test_of_an_equivariant_network_both_tests_say_the_same(
    frame: Representation, corpus: Corpus
) -> None:
    late = Fake(lambda window: window.gyr_f.mean(1) + 0.01 * window.acc_f[:, 0], perfect().axes)
    found = by_test(scores_of(late, frame, corpus))
    assert found[NOMINAL]["ate_se3"] > 0.05
    assert_alike(found[VECTORS], found[NOMINAL], 1e-5)
    assert_alike(found[REMOUNT], found[NOMINAL], 1e-5)


def test_a_gravity_aligned_network_passes_the_remount_and_fails_the_vectors(
    corpus: Corpus,
) -> None:
    """The two tests can give opposite answers, so every row must say which one it is.

    What is symmetric about the vertical has nothing to fear from a remount, as its window turns
    about the vertical only; when the vectors turn and gravity with them, it does.
    """
    found = by_test(scores_of(vertical(), Representation.GRAVITY, corpus))
    assert found[NOMINAL]["velocity_rmse"] > 0.1
    assert found[NOMINAL]["mean_law_error"] == found[NOMINAL]["covariance_law_error"] == 0
    for name in (*PATHS, "mean_law_error"):
        assert found[REMOUNT][name] == pytest.approx(found[NOMINAL][name], abs=1e-4), name
    assert found[VECTORS]["mean_law_error"] > 0.1
    assert abs(found[VECTORS]["ate_se3"] - found[NOMINAL]["ate_se3"]) > 0.02


def test_a_world_network_never_sees_a_remount(corpus: Corpus) -> None:
    found = by_test(scores_of(anisotropic(), Representation.WORLD, corpus))
    assert_alike(found[REMOUNT], found[NOMINAL], 1e-5)
    assert found[VECTORS]["mean_law_error"] > 0.1
    assert found[VECTORS]["covariance_law_error"] > 0.1


@pytest.mark.parametrize("frame", [Representation.BODY, Representation.LAST])
@pytest.mark.parametrize("test", [VECTORS, REMOUNT])
def test_an_anisotropic_network_fails_both(
    frame: Representation, test: str, corpus: Corpus
) -> None:
    """A negative control: were the law errors always small, they would prove nothing."""
    for score in scores_of(anisotropic(), frame, corpus):
        if score.test == test:
            assert score.metrics["mean_law_error"] > 0.1
            assert score.metrics["covariance_law_error"] > 0.3


def test_an_answer_that_never_changes_is_turned_back_before_it_is_scored(corpus: Corpus) -> None:
    """Errors in closed form: the mean over the rotations of |Rᵀ m - m| and |RᵀΣR - Σ| / |Σ|."""
    mean = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    found = by_test(scores_of(stubborn(mean), Representation.WORLD, corpus))
    R_sm = rotations_of(0, VECTORS, CONFIG).double().mT
    expected = (R_sm @ mean - mean).norm(dim=-1).mean()
    assert found[VECTORS]["mean_law_error"] == pytest.approx(float(expected), abs=1e-5)
    sigma = torch.diag((2 * LOG_STD).exp())
    change = torch.linalg.matrix_norm(R_sm @ sigma @ R_sm.mT - sigma).mean()
    expected = change / torch.linalg.matrix_norm(sigma)
    assert found[VECTORS]["covariance_law_error"] == pytest.approx(float(expected), abs=1e-5)
    v_true = corpus.v_w[corpus.rows(0)][:: CONFIG.stride]
    errors = [float((R @ mean - v_true).square().sum(1).mean().sqrt()) for R in R_sm]
    assert found[VECTORS]["velocity_rmse"] == pytest.approx(sum(errors) / 3, abs=1e-5)
    for name in LAWS:
        assert found[REMOUNT][name] == pytest.approx(0, abs=1e-5)


def test_uncertainty_is_scored_in_closed_form(corpus: Corpus) -> None:
    """A constant error in the world, of one standard deviation along each axis, then of four."""
    for size, covered in ((1.0, 1.0), (4.0, 0.0)):
        error = size * LOG_STD.exp()
        off = Fake(lambda window, error=error: told(window) + error, fixed_axes)
        found = by_test(scores_of(off, Representation.WORLD, corpus))[NOMINAL]
        assert found["nees"] == pytest.approx(3 * size**2)
        assert found["nll_mahalanobis"] == pytest.approx(1.5 * size**2)
        assert found["nll_log_det"] == pytest.approx(float(LOG_STD.sum()))
        assert found["nll"] == pytest.approx(found["nll_mahalanobis"] + found["nll_log_det"])
        assert found["cov95"] == covered
        assert found["velocity_rmse"] == pytest.approx(float(error.norm()))
        assert found["ate_origin"] > found["ate_se3"] > 0.01


def test_metrics_are_means_over_rotations(corpus: Corpus) -> None:
    one_each = [
        by_test(scores_of(anisotropic(), Representation.BODY, corpus, replace(CONFIG, rotations=n)))
        for n in (1, 2)
    ]
    first, both = (found[VECTORS]["ate_se3"] for found in one_each)
    second = 2 * both - first
    assert first > 0
    assert second > 0
    assert abs(first - second) > 1e-3


@pytest.mark.parametrize("stride", [1, 4])
def test_a_network_of_this_package_obeys_and_the_baseline_does_not(stride: int) -> None:
    made = Corpus.join([circling(1, 60)])
    config = ProtocolConfig(rotations=2, stride=stride)
    for network, frame, obeys in (
        (SMALL, Representation.LAST, True),
        (SMALL, Representation.BODY, True),
        (SMALL_RESNET, Representation.LAST, False),
    ):
        frontend = NeuralFrontend(
            network=awake(network.build().eval()),
            window=LENGTH,
            representation=frame,
            quantity=Quantity.VELOCITY,
        )
        found = by_test(scores_of(frontend, frame, made, config))
        for test in (VECTORS, REMOUNT):
            errors = [found[test][name] for name in LAWS]
            assert (max(errors) < 1e-3) == obeys, (network, test, errors)
            assert (min(errors) > 1e-3) != obeys, (network, test, errors)


def awake(network: torch.nn.Module) -> torch.nn.Module:
    """No weight as it was made, as some are made zero."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network


# Trivial baselines


def test_standing_still_has_the_errors_of_a_circle() -> None:
    """All from school: about the centre, about the start, and over chords of one second."""
    radius, samples = 2.0, 400
    corpus = Corpus.join([round_and_round(samples, radius)])
    config = ProtocolConfig(tests=(NOMINAL,), stride=1)
    (score,) = trivial_baselines(corpus, config)["standing still"]
    omega = 2 * math.pi * 25 / samples
    expected = {
        "ate_se3": radius,
        "ate_yaw": radius,
        "ate_origin": radius * math.sqrt(2),
        "rte_1s": 2 * radius * math.sin(omega / 2),
        "drift_ratio": 100 / (samples - 1),
        "velocity_rmse": radius * omega,
    }
    assert_alike(score.metrics, expected, 1e-9)


def test_strapdown_has_no_error_where_it_is_exact() -> None:
    corpus = Corpus.join([tumbling(1), tumbling(2, 120)])
    for stride in (1, 3):
        rows = trivial_baselines(corpus, ProtocolConfig(stride=stride))["strapdown"]
        assert [(s.recording, s.test) for s in rows] == [
            (name, test) for name in corpus.names for test in TESTS
        ]
        for score in rows:
            assert_alike(score.metrics, dict.fromkeys(PATHS, 0.0), 1e-6)


def test_baselines_are_scored_at_the_samples_of_networks(corpus: Corpus) -> None:
    """Standing still is a network that always says zero."""
    for stride in (1, 5, 7):
        config = ProtocolConfig(tests=(NOMINAL,), stride=stride)
        rows = trivial_baselines(corpus, config)["standing still"]
        zero = stubborn(torch.zeros(3, dtype=torch.float64))
        for row, score in zip(
            rows, scores_of(zero, Representation.WORLD, corpus, config), strict=True
        ):
            assert row.recording == score.recording
            assert_alike(row.metrics, {n: score.metrics[n] for n in PATHS}, 1e-12)
