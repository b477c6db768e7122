from dataclasses import replace

import pytest
import torch
from fake_frontends import Fake, felt_axes, perfect, telling, told, tumbling
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, rotations, yaw_matrices

from ginio.core import Quantity, Representation
from ginio.core.recording import Recording
from ginio.data.corpus import Corpus
from ginio.data.windows import AttitudeSource, WindowSet
from ginio.evaluation import odometry
from ginio.evaluation.odometry import Question, integrate, run_odometries, run_odometry, strapdown

LENGTH = 16


def windows_of(
    *recordings: Recording, attitude: AttitudeSource = AttitudeSource.TRUTH
) -> WindowSet:
    return WindowSet(Corpus.join(recordings), LENGTH, Quantity.VELOCITY, attitude)


def every(windows: WindowSet, recording: int, stride: int = 1) -> torch.Tensor:
    rows = windows.corpus.rows(recording)
    return torch.arange(rows.start, rows.stop, stride)


# Sums


@given(count=st.integers(1, 30), seed=st.integers(0, 1000))
def test_a_velocity_that_grows_steadily_is_summed_exactly_at_any_stamps(
    count: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    t = torch.rand(count, generator=generator, dtype=torch.float64).cumsum(0)
    start, slope = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    s = (t - t[0]).unsqueeze(1)
    assert_near(integrate(t, start + slope * s), start * s + 0.5 * slope * s**2, 1e-10)


def test_sums_begin_at_nothing_and_follow_the_clock() -> None:
    t = torch.tensor([5.0, 5.5, 7.5], dtype=torch.float64)
    v_w = torch.tensor([[1.0, 0, 0], [3.0, 0, 0], [5.0, 0, 0]], dtype=torch.float64)
    assert integrate(t, v_w)[:, 0].tolist() == [0.0, 1.0, 9.0]


# A frontend at work


def odometry_of(
    frontend: Fake,
    windows: WindowSet,
    last: torch.Tensor,
    frame: Representation,
    R_ms: torch.Tensor | None = None,
) -> odometry.Odometry:
    return run_odometry(frontend, Question(windows=windows, last=last, R_ms=R_ms), frame)


@pytest.mark.parametrize("frame", Representation)
@pytest.mark.parametrize("stride", [1, 3])
def test_perfect_velocities_give_the_true_path(frame: Representation, stride: int) -> None:
    """In any representation, in the second recording as in the first, turned or not."""
    windows = windows_of(telling(1), telling(2))
    c = windows.corpus
    for recording in range(2):
        last = every(windows, recording, stride)
        for R_ms in (None, rotations(1, torch.float64)[0]):
            found = odometry_of(perfect(), windows, last, frame, R_ms)
            assert_near(found.p_w, c.p_w[last], 1e-11)
            assert_near(found.measurement.mean, c.v_w[last], 1e-12)
            assert torch.equal(found.t, c.t[last])
            assert torch.equal(found.R_ws, c.R_ws[last])


def test_paths_are_summed_in_double_precision_from_the_true_position() -> None:
    recording = telling(3)
    truth = recording.truth
    short = replace(
        recording,
        imu=replace(
            recording.imu, acc_s=recording.imu.acc_s.float(), gyr_s=recording.imu.gyr_s.float()
        ),
        truth=replace(truth, R_ws=truth.R_ws.float(), p_w=truth.p_w.float(), v_w=truth.v_w.float()),
    )
    windows = windows_of(short)
    found = odometry_of(perfect(), windows, every(windows, 0), Representation.LAST)
    assert found.p_w.dtype == torch.float64
    assert_near(found.p_w[0], short.truth.p_w[0].double(), 0)
    assert_near(found.p_w, truth.p_w, 1e-4)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_the_size_of_a_chunk_does_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = windows_of(telling(4))
    last, R_ms = every(windows, 0), rotations(1, torch.float64)[0]
    whole = odometry_of(perfect(), windows, last, Representation.LAST, R_ms)
    monkeypatch.setattr(odometry, "CHUNK", chunk)
    frontend = perfect()
    parts = odometry_of(frontend, windows, last, Representation.LAST, R_ms)
    assert max(len(asked) for asked in frontend.asked) == min(chunk, len(last))
    assert_near(parts.p_w, whole.p_w, 1e-12)
    assert_near(parts.measurement.covariance.matrix(), whole.measurement.covariance.matrix(), 1e-12)


@pytest.mark.parametrize("chunk", [1, 7, 150, 100_000])
def test_questions_asked_together_are_answered_as_if_alone(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several lengths, several recordings, turned and not."""
    windows, R_ms = windows_of(telling(4), telling(5)), rotations(1, torch.float64)[0]
    questions = [
        Question(windows=windows, last=every(windows, recording, stride), R_ms=turn)
        for recording, stride in ((0, 3), (1, 1), (0, 7))
        for turn in (None, R_ms)
    ]
    alone = [run_odometry(perfect(), question, Representation.LAST_BODY) for question in questions]
    monkeypatch.setattr(odometry, "CHUNK", chunk)
    frontend = perfect()
    together = run_odometries(frontend, questions, Representation.LAST_BODY)
    assert max(len(asked) for asked in frontend.asked) <= chunk
    for found, expected in zip(together, alone, strict=True):
        assert_near(found.p_w, expected.p_w, 1e-12)
        assert torch.equal(found.t, expected.t)
        sigma = expected.measurement.covariance.matrix()
        assert_near(found.measurement.covariance.matrix(), sigma, 1e-12)


def test_uncertainties_come_back_to_the_world_with_the_answers() -> None:
    windows = windows_of(telling(5))
    last = every(windows, 0)
    world = odometry_of(perfect(), windows, last, Representation.WORLD)
    turned = odometry_of(
        perfect(), windows, last, Representation.WORLD, rotations(1, torch.float64)[0]
    )
    sigma = world.measurement.covariance.matrix()
    assert_near(turned.measurement.covariance.matrix(), sigma, 1e-10)
    spread = torch.linalg.eigvalsh(sigma)
    assert bool((spread[:, 2] / spread[:, 0] > 2).all())


def test_a_network_sees_turned_vectors_and_nothing_else_changes() -> None:
    windows, frontend, R_ms = windows_of(telling(6)), perfect(), rotations(1, torch.float64)[0]
    last = every(windows, 0)
    for turn in (None, R_ms):
        odometry_of(frontend, windows, last, Representation.GRAVITY, turn)
    plain, turned = frontend.asked
    assert_near(turned, R_ms @ plain, 1e-12)


def test_the_attitude_asked_for_turns_the_answers() -> None:
    """An onboard heading that is off turns the path, and the windows are cut with it."""
    made = telling(7)
    R_error = yaw_matrices(torch.tensor([0.4], dtype=torch.float64))[0]
    made = replace(made, onboard_R_ws=R_error @ made.truth.R_ws)
    windows = windows_of(made, attitude=AttitudeSource.ONBOARD)
    last = every(windows, 0)
    found = odometry_of(perfect(), windows, last, Representation.LAST)
    assert made.onboard_R_ws is not None
    assert torch.equal(found.R_ws, made.onboard_R_ws)
    assert_near(found.measurement.mean, made.truth.v_w @ R_error.mT, 1e-12)
    moved = made.truth.p_w - made.truth.p_w[0]
    assert_near(found.p_w, made.truth.p_w[0] + moved @ R_error.mT, 1e-11)


@pytest.mark.parametrize("frame", Representation)
def test_an_attitude_that_does_not_exist_is_refused(frame: Representation) -> None:
    """Not turned into a score of NaN."""
    windows = windows_of(telling(8), attitude=AttitudeSource.ONBOARD)
    with pytest.raises(ValueError, match="attitude 'onboard' does not exist for every sample"):
        odometry_of(perfect(), windows, every(windows, 0), frame)


def test_displacements_are_not_summed_up_as_velocities() -> None:
    windows = windows_of(telling(9))
    frontend = Fake(told, felt_axes, Quantity.DISPLACEMENT)
    with pytest.raises(ValueError, match="sums up velocities; found a network of displacement"):
        odometry_of(frontend, windows, every(windows, 0), Representation.LAST)


# Strapdown


@pytest.mark.parametrize("seed", range(4))
def test_strapdown_is_exact_where_rate_and_acceleration_are_constant(seed: int) -> None:
    made = tumbling(seed)
    corpus = Corpus.join([tumbling(99, 30), made, tumbling(98, 30)])
    v_w = strapdown(corpus, 1)
    assert_near(v_w, made.truth.v_w, 1e-10)
    p_w = made.truth.p_w[0] + integrate(made.imu.t, v_w)
    assert_near(p_w, made.truth.p_w, 1e-9)


def test_strapdown_does_not_see_how_the_sensor_is_mounted() -> None:
    corpus = Corpus.join([tumbling(5)])
    remounted = corpus.remounted(rotations(1, torch.float64)[0])
    assert_near(strapdown(remounted, 0), strapdown(corpus, 0), 1e-10)


def test_strapdown_turns_a_bias_into_its_drift() -> None:
    """A constant error of the accelerometer on a sensor at rest grows linearly."""
    at_rest = tumbling(6)
    n = len(at_rest.imu)
    bias = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64)
    up = torch.tensor([0.0, 0.0, 9.80665], dtype=torch.float64)
    R_ws = rotations(1, torch.float64)[0]
    still = replace(
        at_rest,
        imu=replace(
            at_rest.imu, acc_s=(R_ws.mT @ up + bias).expand(n, 3), gyr_s=torch.zeros(n, 3).double()
        ),
        truth=replace(
            at_rest.truth,
            R_ws=R_ws.expand(n, 3, 3),
            p_w=torch.zeros(n, 3).double(),
            v_w=torch.zeros(n, 3).double(),
        ),
    )
    drift = at_rest.imu.t.unsqueeze(1) * (R_ws @ bias)
    assert_near(strapdown(Corpus.join([still]), 0), drift, 1e-11)


def test_strapdown_does_not_look_at_the_truth_after_the_first_sample() -> None:
    made = tumbling(7)
    corpus = Corpus.join([made])
    blind = replace(
        corpus, **{name: getattr(corpus, name).clone() for name in ("R_ws", "v_w", "p_w")}
    )
    for truth in (blind.R_ws, blind.v_w, blind.p_w):
        truth[1:] = torch.nan
    assert torch.equal(strapdown(blind, 0), strapdown(corpus, 0))
