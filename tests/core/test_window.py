import re

import pytest
import torch
from scipy.spatial.transform import Rotation
from strategies import (
    Sampler,
    assert_near,
    each_sampler,
    recording,
    rotations,
    yaw_matrices,
)
from torch import Tensor

from ginio.core import Recording, Representation, Window, cut, represent
from ginio.core.window import ATTITUDE_CHANNELS, imu_channels

SAMPLES, LENGTH = 60, 7
LAST = torch.tensor([6, 10, 10, 33, 59])

each_representation = pytest.mark.parametrize("representation", list(Representation), ids=str)


def windows(source: Recording, representation: Representation) -> Window:
    imu, truth = source.imu, source.truth
    return cut(imu.acc_s, imu.gyr_s, truth.R_ws, LAST, LENGTH, representation)


def upright(dtype: torch.dtype) -> Recording:
    return recording(SAMPLES, dtype, spread=0.2)


def heading(R_ws: Tensor) -> Tensor:
    x, y, z, w = torch.from_numpy(Rotation.from_matrix(R_ws.double().numpy()).as_quat())
    assert x.hypot(y) < 0.99
    return yaw_matrices(2 * torch.atan2(z, w)).to(R_ws.dtype)


def frame_of(representation: Representation, R_ws: Tensor, at: int) -> tuple[Tensor, Tensor]:
    """``R_fs`` of one sample of a window and the window's ``R_wf``, one window at a time."""
    eye, R_wl, R_wg = torch.eye(3, dtype=R_ws.dtype), R_ws[-1], heading(R_ws[0])
    return {
        Representation.BODY: (eye, R_wl),
        Representation.LAST: (R_wl.T @ R_ws[at], R_wl),
        Representation.WORLD: (R_ws[at], eye),
        Representation.GRAVITY: (R_wg.T @ R_ws[at], R_wg),
        Representation.LAST_BODY: (R_wl.T @ R_ws[at], R_wl),
        Representation.BODY_ATTITUDE: (eye, R_wl),
    }[representation]


@each_representation
def test_every_sample_is_where_a_loop_puts_it(
    representation: Representation, dtype: torch.dtype, tol: float
) -> None:
    source = upright(dtype)
    found = windows(source, representation)
    assert found.representation is representation
    assert found.length == LENGTH
    for i, last in enumerate(LAST.tolist()):
        first = last - LENGTH + 1
        R_ws = source.truth.R_ws[first : last + 1]
        for k in range(LENGTH):
            R_fs, R_wf = frame_of(representation, R_ws, k)
            assert_near(found.acc_f[i, k], R_fs @ source.imu.acc_s[first + k], 10 * tol)
            assert_near(found.gyr_f[i, k], R_fs @ source.imu.gyr_s[first + k], 10 * tol)
        assert_near(found.R_wf[i], R_wf, 10 * tol)


@each_representation
def test_cut_is_represent_of_slices(representation: Representation, dtype: torch.dtype) -> None:
    source = upright(dtype)
    signals = source.imu.acc_s, source.imu.gyr_s, source.truth.R_ws
    slices = [torch.stack([s[i - LENGTH + 1 : i + 1] for i in LAST.tolist()]) for s in signals]
    expected, found = represent(*slices, representation), windows(source, representation)
    assert torch.equal(found.acc_f, expected.acc_f)
    assert torch.equal(found.gyr_f, expected.gyr_f)
    assert torch.equal(found.R_wf, expected.R_wf)
    assert torch.equal(found.features(), expected.features())


@pytest.mark.parametrize("last", [[5], [-1], [60], [6, 60], [10, 5]], ids=str)
def test_cut_refuses_windows_that_leave_the_recording(last: list[int]) -> None:
    source = recording(SAMPLES, torch.float32)
    signals = source.imu.acc_s, source.imu.gyr_s, source.truth.R_ws
    found = re.escape(f"end at index 6..59; found {min(last)}..{max(last)}")
    with pytest.raises(ValueError, match=found):
        cut(*signals, torch.tensor(last), LENGTH, Representation.BODY)


@pytest.mark.parametrize("length", [-1, 0, 61])
def test_cut_refuses_a_length_the_recording_does_not_have(length: int) -> None:
    source = recording(SAMPLES, torch.float32)
    signals = source.imu.acc_s, source.imu.gyr_s, source.truth.R_ws
    with pytest.raises(ValueError, match=re.escape(f"in 1..60 samples; found {length}")):
        cut(*signals, LAST, length, Representation.BODY)


@pytest.mark.parametrize("length", [1, SAMPLES])
def test_cut_goes_up_to_the_ends_of_the_recording(length: int, dtype: torch.dtype) -> None:
    source = recording(SAMPLES, dtype)
    signals = source.imu.acc_s, source.imu.gyr_s, source.truth.R_ws
    last = torch.tensor([SAMPLES - 1])
    found = cut(*signals, last, length, Representation.BODY)
    assert torch.equal(found.acc_f[0], source.imu.acc_s[-length:])


def test_the_world_window_is_the_last_frame_window_turned(dtype: torch.dtype, tol: float) -> None:
    source = recording(SAMPLES, dtype)
    last, world = (windows(source, r) for r in (Representation.LAST, Representation.WORLD))
    turned = last.rotated(last.R_wf)
    assert_near(turned.acc_f, world.acc_f, tol)
    assert_near(turned.gyr_f, world.gyr_f, tol)
    assert_near(turned.R_wf, world.R_wf, tol)


def test_the_gravity_window_is_the_world_window_turned_about_the_vertical(
    dtype: torch.dtype, tol: float
) -> None:
    source = upright(dtype)
    gravity, world = (windows(source, r) for r in (Representation.GRAVITY, Representation.WORLD))
    assert_near(gravity.acc_f[..., 2], world.acc_f[..., 2], tol)
    assert_near(gravity.rotated(gravity.R_wf).acc_f, world.acc_f, tol)


def test_body_and_last_frame_windows_agree_on_the_last_sample(
    dtype: torch.dtype, tol: float
) -> None:
    source = recording(SAMPLES, dtype)
    body, last = (windows(source, r) for r in (Representation.BODY, Representation.LAST))
    assert_near(last.acc_f[:, -1], body.acc_f[:, -1], tol)
    assert_near(last.R_wf, body.R_wf, 0)


@pytest.mark.parametrize(
    "representation", [Representation.LAST, Representation.WORLD, Representation.GRAVITY], ids=str
)
def test_the_way_back_to_the_world_is_the_same_from_every_frame(
    representation: Representation, dtype: torch.dtype, tol: float
) -> None:
    source = recording(SAMPLES, dtype)
    found = windows(source, representation)
    back = torch.einsum("bij,btj->bti", found.R_wf, found.acc_f)
    assert_near(back, windows(source, Representation.WORLD).acc_f, 10 * tol)


@each_sampler
def test_a_remount_leaves_the_world_window(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    source, R_ms = recording(SAMPLES, dtype), rotations(1, dtype, sampler)[0]
    before = windows(source, Representation.WORLD)
    after = windows(source.remounted(R_ms), Representation.WORLD)
    assert_near(after.features(), before.features(), tol)
    assert_near(after.R_wf, before.R_wf, 0)


@each_representation
def test_features_are_as_many_as_the_representation_says(representation: Representation) -> None:
    features = windows(upright(torch.float64), representation).features()
    assert features.shape == (len(LAST), representation.channels, 3, LENGTH)


def test_body_vectors_stand_beside_aligned_ones(dtype: torch.dtype) -> None:
    source = recording(SAMPLES, dtype)
    both = windows(source, Representation.LAST_BODY).features()
    assert torch.equal(both[:, :2], windows(source, Representation.LAST).features())
    assert torch.equal(both[:, 2:], windows(source, Representation.BODY).features())


def test_the_worlds_axes_stand_beside_body_vectors(dtype: torch.dtype, tol: float) -> None:
    source = recording(SAMPLES, dtype)
    both = windows(source, Representation.BODY_ATTITUDE).features()
    assert torch.equal(both[:, :2], windows(source, Representation.BODY).features())
    for i, last in enumerate(LAST.tolist()):
        for k in range(LENGTH):
            R_sw = source.truth.R_ws[last - LENGTH + 1 + k].T
            for axis in range(3):
                e_w = torch.eye(3, dtype=dtype)[axis]
                assert_near(both[i, 2 + axis, :, k], R_sw @ e_w, tol)


@each_representation
def test_inertial_channels_are_counted_from_all(representation: Representation) -> None:
    attitude = representation is Representation.BODY_ATTITUDE
    expected = representation.channels - (ATTITUDE_CHANNELS if attitude else 0)
    assert imu_channels(representation.channels) == expected


@pytest.mark.bare
def test_a_window_without_its_body_vectors_is_refused() -> None:
    signal, R_wf = torch.zeros(2, 5, 3), torch.zeros(2, 3, 3)
    with pytest.raises(ValueError, match=r"'last\+body' representation has 4 .*; found 2"):
        Window(signal, signal, R_wf, Representation.LAST_BODY)
    with pytest.raises(ValueError, match=r"'body' representation has 2 .*; found 4"):
        Window(signal, signal, R_wf, Representation.BODY, torch.zeros(2, 2, 3, 5))


@pytest.mark.parametrize(
    "representation",
    [
        Representation.LAST,
        Representation.BODY,
        Representation.LAST_BODY,
        Representation.BODY_ATTITUDE,
    ],
    ids=str,
)
@each_sampler
def test_a_remount_turns_the_sensor_frame_windows(
    sampler: Sampler, representation: Representation, dtype: torch.dtype, tol: float
) -> None:
    source, R_ms = recording(SAMPLES, dtype), rotations(1, dtype, sampler)
    expected = windows(source, representation).rotated(R_ms)
    after = windows(source.remounted(R_ms[0]), representation)
    assert_near(after.features(), expected.features(), tol)
    assert_near(after.R_wf, expected.R_wf, tol)


def test_a_remount_turns_the_gravity_window_about_the_vertical(
    dtype: torch.dtype, tol: float
) -> None:
    source, R_ms = upright(dtype), rotations(1, dtype)[0]
    before = windows(source, Representation.GRAVITY)
    after = windows(source.remounted(R_ms), Representation.GRAVITY)
    turn = after.R_wf.mT @ before.R_wf
    assert_near(turn[:, 2], torch.tensor([0.0, 0.0, 1.0], dtype=dtype), 10 * tol)
    assert_near(after.features(), before.rotated(turn).features(), 100 * tol)


@pytest.mark.parametrize(
    ("representation", "heading_matters"),
    [(Representation.LAST, 0), (Representation.GRAVITY, 0), (Representation.WORLD, 1)],
    ids=str,
)
def test_only_the_world_window_sees_a_change_of_heading(
    representation: Representation, heading_matters: int, dtype: torch.dtype, tol: float
) -> None:
    source = upright(dtype)
    R_vw = yaw_matrices(torch.tensor(1.0, dtype=torch.float64)).to(dtype)
    signals = source.imu.acc_s, source.imu.gyr_s
    R_ws = source.truth.R_ws
    before = cut(*signals, R_ws, LAST, LENGTH, representation)
    after = cut(*signals, R_vw @ R_ws, LAST, LENGTH, representation)
    moved = (after.features() - before.features()).abs().max()
    assert (moved > 0.1) if heading_matters else (moved < 10 * tol)
    assert_near(after.R_wf, before.R_wf if heading_matters else R_vw @ before.R_wf, 10 * tol)


def test_the_gravity_window_points_up_at_rest(dtype: torch.dtype, tol: float) -> None:
    R_ws = rotations(5, dtype).unsqueeze(1).expand(5, LENGTH, 3, 3)
    up_w = torch.tensor([0.0, 0.0, 9.80665], dtype=dtype)
    acc_s = torch.einsum("btji,j->bti", R_ws, up_w)
    found = represent(acc_s, torch.zeros_like(acc_s), R_ws, Representation.GRAVITY)
    assert_near(found.acc_f.mean((0, 1)), up_w, 10 * tol)


def test_features_are_specific_force_then_angular_rate_with_time_last(dtype: torch.dtype) -> None:
    found = windows(recording(SAMPLES, dtype), Representation.LAST)
    features = found.features()
    assert features.shape == (len(LAST), 2, 3, LENGTH)
    assert features.dtype == dtype
    for k in range(LENGTH):
        assert torch.equal(features[:, 0, :, k], found.acc_f[:, k])
        assert torch.equal(features[:, 1, :, k], found.gyr_f[:, k])


@each_sampler
def test_rotated_window_is_the_same_answer_to_the_world(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    found = windows(recording(SAMPLES, dtype), Representation.LAST)
    R_af = rotations(len(LAST), dtype, sampler)
    turned = found.rotated(R_af)
    assert_near(turned.features(), torch.einsum("bij,bcjt->bcit", R_af, found.features()), tol)
    there, here = (torch.einsum("bij,btj->bti", w.R_wf, w.acc_f) for w in (turned, found))
    assert_near(there, here, 10 * tol)


def test_first_invalid_finds_the_first_value_that_is_not_finite(dtype: torch.dtype) -> None:
    found = windows(recording(SAMPLES, dtype), Representation.BODY)
    assert found.first_invalid() is None
    acc, gyr = found.acc_f.clone(), found.gyr_f.clone()
    acc[3, 1, 0] = torch.nan
    assert Window(acc, gyr, found.R_wf, found.representation).first_invalid() == (3, 1)
    gyr[2, 5, 2] = torch.inf
    assert Window(acc, gyr, found.R_wf, found.representation).first_invalid() == (2, 5)


@pytest.mark.bare
@pytest.mark.parametrize(
    ("acc", "gyr", "R_wf", "message"),
    [
        ((2, 5, 2), (2, 5, 2), (2, 3, 3), "acc must be (batch, time, 3); found (2, 5, 2)"),
        ((5, 3), (5, 3), (5, 3, 3), "acc must be (batch, time, 3); found (5, 3)"),
        ((2, 0, 3), (2, 0, 3), (2, 3, 3), "acc must be (batch, time, 3); found (2, 0, 3)"),
        ((2, 5, 3), (2, 4, 3), (2, 3, 3), "the shape of acc, (2, 5, 3); found (2, 4, 3)"),
        ((2, 5, 3), (2, 5, 3), (3, 3), "R_wf must be (2, 3, 3), one a window; found (3, 3)"),
    ],
)
def test_window_refuses_shapes_that_do_not_fit(
    acc: tuple[int, ...], gyr: tuple[int, ...], R_wf: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Window(torch.zeros(acc), torch.zeros(gyr), torch.zeros(R_wf), Representation.BODY)


@pytest.mark.bare
@pytest.mark.parametrize(
    ("acc", "gyr"), [(torch.int32, torch.int32), (torch.float32, torch.float64)], ids=str
)
def test_window_refuses_samples_of_other_kinds(acc: torch.dtype, gyr: torch.dtype) -> None:
    samples = torch.zeros(2, 5, 3)
    with pytest.raises(ValueError, match=f"found {acc} and {gyr}"):
        Window(samples.to(acc), samples.to(gyr), torch.zeros(2, 3, 3), Representation.BODY)


@pytest.mark.bare
@each_representation
def test_represent_refuses_attitudes_that_do_not_fit(representation: Representation) -> None:
    with pytest.raises(ValueError, match=r"R_ws must be \(2, 5, 3, 3\); found \(2, 4, 3, 3\)"):
        represent(
            torch.zeros(2, 5, 3), torch.zeros(2, 5, 3), torch.zeros(2, 4, 3, 3), representation
        )
