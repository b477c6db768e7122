import pytest
import torch
from strategies import circling

from ginio.core import Quantity, Representation
from ginio.data.augment import AugmentConfig, disturb, frame_error, rotations, shifted, turn
from ginio.data.corpus import Corpus, decimate
from ginio.data.windows import AttitudeSource, WindowSet, target_f
from ginio.geometry import so3


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.join([circling(1, 90), circling(2, 60)])


@pytest.fixture
def windows(corpus: Corpus) -> WindowSet:
    return WindowSet(corpus, 32, Quantity.VELOCITY)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_recordings_lie_end_to_end(corpus: Corpus) -> None:
    assert corpus.names == ("circle_1", "circle_2")
    assert corpus.rows(0) == slice(0, 90)
    assert corpus.rows(1) == slice(90, 150)
    assert torch.equal(corpus.p_w[corpus.rows(1)], circling(2, 60).truth.p_w)


def test_no_window_reaches_into_another_recording(windows: WindowSet) -> None:
    index = windows.index(torch.arange(len(windows)))
    start = windows.corpus.start
    assert bool((start[index] == start[index[:, -1:]]).all())


def test_a_window_before_the_start_repeats_the_first_sample(windows: WindowSet) -> None:
    felt = windows.windows(torch.tensor([95]))
    first = windows.corpus.acc_s[90]
    assert torch.equal(felt.acc_s[0, :27], first.expand(27, 3))
    assert torch.equal(felt.acc_s[0, 26:], windows.corpus.acc_s[90:96])


@pytest.mark.parametrize("frame", Representation)
def test_targets_turn_back_to_the_true_motion(windows: WindowSet, frame: Representation) -> None:
    last = torch.arange(40, 80)
    window = windows.windows(last).represent(frame)
    target = target_f(window, windows.motion_w(last))
    assert torch.allclose(so3.rotate(window.R_wf, target), windows.corpus.v_w[last], atol=1e-5)


def test_displacement_spans_the_window(corpus: Corpus) -> None:
    windows = WindowSet(corpus, 32, Quantity.DISPLACEMENT)
    moved = windows.motion_w(torch.tensor([80, 92]))
    assert torch.equal(moved[0], corpus.p_w[80] - corpus.p_w[49])
    assert torch.equal(moved[1], corpus.p_w[92] - corpus.p_w[90])


def test_attitude_source_is_used(corpus: Corpus) -> None:
    felt = WindowSet(corpus, 8, Quantity.VELOCITY, AttitudeSource.ONBOARD).windows(
        torch.tensor([50])
    )
    assert bool(torch.isnan(felt.R_ws).all())


def test_decimation_keeps_means_and_truth() -> None:
    full = circling(3, 101)
    (half,) = decimate([full], 4)
    assert len(half.imu) == 25
    assert torch.equal(half.imu.acc_s[2], full.imu.acc_s[8:12].mean(0))
    assert torch.equal(half.truth.p_w[2], full.truth.p_w[10])
    assert torch.equal(half.imu.t, half.truth.t)


def test_nothing_is_disturbed_by_default(windows: WindowSet) -> None:
    felt = windows.windows(torch.arange(40, 50))
    same = disturb(felt, AugmentConfig(), seeded())
    assert torch.equal(same.acc_s, felt.acc_s)
    assert torch.equal(same.R_ws, felt.R_ws)


def test_a_bias_is_constant_in_a_window_and_within_its_bound(windows: WindowSet) -> None:
    felt = windows.windows(torch.arange(40, 80))
    biased = disturb(felt, AugmentConfig(bias_acc_mps2=0.3), seeded())
    error = biased.acc_s - felt.acc_s
    assert torch.allclose(error, error[:, :1].expand_as(error), atol=1e-5)
    assert 0.2 < float(error.abs().max()) <= 0.3 + 1e-5
    assert torch.equal(biased.gyr_s, felt.gyr_s)


def test_noise_and_scale_have_their_size(windows: WindowSet) -> None:
    felt = windows.windows(torch.arange(20, 150))
    noisy = disturb(felt, AugmentConfig(noise_gyr_radps=0.2), seeded())
    assert float((noisy.gyr_s - felt.gyr_s).std()) == pytest.approx(0.2, rel=0.05)
    scaled = disturb(felt, AugmentConfig(scale=0.1), seeded())
    ratio = (scaled.acc_s.norm(dim=-1) / felt.acc_s.norm(dim=-1))[:, 0]
    assert float(ratio.std()) == pytest.approx(0.1, rel=0.2)


def test_a_tilt_keeps_relative_attitudes_in_the_world(windows: WindowSet) -> None:
    felt = windows.windows(torch.arange(40, 80))
    tilted = disturb(felt, AugmentConfig(tilt_deg=2.0), seeded())
    angle = so3.geodesic_angle(tilted.R_ws, felt.R_ws)
    assert torch.allclose(angle, angle[:, :1].expand_as(angle), atol=1e-3)
    assert 0.01 < float(angle.mean()) < 0.12


@pytest.mark.parametrize("angle_deg", [3.0, 20.0])
def test_frame_errors_have_their_angle(windows: WindowSet, angle_deg: float) -> None:
    felt = windows.windows(torch.arange(40, 80))
    wrong = frame_error(felt, angle_deg, seeded())
    angle = torch.rad2deg(so3.geodesic_angle(wrong.R_ws, felt.R_ws))
    assert torch.allclose(angle, torch.full_like(angle, angle_deg), atol=0.02)


def test_a_constant_frame_error_does_not_touch_lfa(windows: WindowSet) -> None:
    felt = windows.windows(torch.arange(40, 80))
    wrong = frame_error(felt, 20.0, seeded()).represent(Representation.LAST)
    right = felt.represent(Representation.LAST)
    assert torch.allclose(wrong.acc_f, right.acc_f, atol=1e-4)


def test_shift_repeats_ends() -> None:
    signal = torch.arange(10.0).expand(200, 10)[..., None].expand(200, 10, 3)
    (moved,) = shifted((signal,), 2, seeded())
    offsets = (moved - signal)[:, 5, 0]
    assert set(offsets.tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert float(moved.max()) == 9.0


@pytest.mark.parametrize("kind", ["yaw", "quarter", "so3"])
def test_turns_are_rotations_of_their_kind(kind: str) -> None:
    R = rotations(kind, 2000, seeded())
    assert torch.allclose(R @ R.mT, torch.eye(3).expand_as(R), atol=1e-5)
    assert torch.allclose(torch.det(R), torch.ones(2000), atol=1e-4)
    up = torch.tensor([0.0, 0.0, 1.0])
    if kind == "yaw":
        assert torch.allclose(R @ up, up.expand(2000, 3), atol=1e-6)
    elif kind == "quarter":
        assert len(R.round().unique(dim=0)) == 24
    else:
        assert float((R @ up).mean(0).norm()) < 0.05


def test_window_and_target_turn_alike(windows: WindowSet) -> None:
    last = torch.arange(40, 80)
    window = windows.windows(last).represent(Representation.LAST)
    target = target_f(window, windows.motion_w(last))
    window_a, target_a = turn(window, target, "so3", seeded())
    assert not torch.allclose(target, target_a)
    in_world = so3.rotate(window_a.R_wf, target_a)
    assert torch.allclose(in_world, windows.corpus.v_w[last], atol=1e-5)
    assert torch.allclose(
        (window.acc_f * target.unsqueeze(1)).sum(-1),
        (window_a.acc_f * target_a.unsqueeze(1)).sum(-1),
        atol=1e-4,
    )
