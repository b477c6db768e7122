from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, recording, rotations

from ginio.core import Quantity
from ginio.core.recording import Recording, Trajectory
from ginio.data.corpus import Corpus, decimate
from ginio.data.windows import AttitudeSource, WindowSet

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=5)
TENSORS = [f.name for f in fields(Corpus) if f.name != "names"]


def aboard(samples: int, name: str = "aboard") -> Recording:
    """A recording with an onboard attitude that is not the true one."""
    made = recording(samples, torch.float64)
    return replace(made, name=name, onboard_R_ws=rotations(samples, torch.float64))


def several(lengths: list[int]) -> list[Recording]:
    return [aboard(samples, f"{i}") for i, samples in enumerate(lengths)]


# End to end


@given(lengths=LENGTHS)
def test_every_recording_is_found_again_in_its_rows(lengths: list[int]) -> None:
    recordings = several(lengths)
    corpus = Corpus.join(recordings)
    assert len(corpus) == sum(lengths)
    assert corpus.names == tuple(r.name for r in recordings)
    for i, r in enumerate(recordings):
        rows = corpus.rows(i)
        assert rows.stop - rows.start == len(r.imu)
        assert torch.equal(corpus.start[rows], torch.full((len(r.imu),), rows.start))
        for found, expected in (
            (corpus.t, r.imu.t),
            (corpus.acc_s, r.imu.acc_s),
            (corpus.gyr_s, r.imu.gyr_s),
            (corpus.R_ws, r.truth.R_ws),
            (corpus.p_w, r.truth.p_w),
            (corpus.v_w, r.truth.v_w),
            (corpus.onboard_R_ws, r.onboard_R_ws),
        ):
            assert torch.equal(found[rows], expected)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(ValueError, match="needs at least one recording; found none"):
        Corpus.join([])


def test_a_truth_on_another_clock_is_refused_and_named() -> None:
    good = aboard(8, "good")
    late = Trajectory(good.truth.t + 1e-3, good.truth.R_ws, good.truth.p_w, good.truth.v_w)
    shorter = recording(7, torch.float64).truth
    for truth in (late, shorter):
        with pytest.raises(ValueError, match="bad: truth must be on the IMU's clock"):
            Corpus.join([good, replace(good, name="bad", truth=truth)])


def test_nan_stands_for_an_onboard_attitude_that_does_not_exist() -> None:
    with_one, without = aboard(5), replace(aboard(6), onboard_R_ws=None)
    corpus = Corpus.join([with_one, without, with_one])
    missing = torch.isnan(corpus.onboard_R_ws)
    assert bool(missing[corpus.rows(1)].all())
    assert not bool(missing[corpus.rows(0)].any())
    assert not bool(missing[corpus.rows(2)].any())
    assert not any(bool(torch.isnan(getattr(corpus, f)).any()) for f in ("R_ws", "acc_s", "p_w"))


def test_a_corpus_moves_whole() -> None:
    corpus = Corpus.join([aboard(5)])
    moved = corpus.to("meta")
    assert {getattr(moved, name).device.type for name in TENSORS} == {"meta"}
    assert {getattr(corpus, name).device.type for name in TENSORS} == {"cpu"}
    assert moved.names == corpus.names


# Remounting


@given(lengths=LENGTHS)
def test_a_remounted_corpus_is_the_corpus_of_remounted_recordings(lengths: list[int]) -> None:
    recordings, R_ms = several(lengths), rotations(1, torch.float64)[0]
    found = Corpus.join(recordings).remounted(R_ms)
    expected = Corpus.join([r.remounted(R_ms) for r in recordings])
    assert found.names == expected.names
    for name in TENSORS:
        assert_near(getattr(found, name), getattr(expected, name), 1e-13)


def test_a_remounted_sensor_feels_the_same_in_the_world() -> None:
    corpus, R_ms = Corpus.join([aboard(50)]), rotations(1, torch.float64)[0]
    found = corpus.remounted(R_ms)
    for signal in ("acc_s", "gyr_s"):
        here, there = (
            torch.einsum("tij,tj->ti", c.R_ws, getattr(c, signal)) for c in (corpus, found)
        )
        assert_near(there, here, 1e-12)
        assert not torch.allclose(getattr(found, signal), getattr(corpus, signal), atol=0.1)
    relative = corpus.R_ws.mT @ corpus.onboard_R_ws
    assert_near(found.R_ws.mT @ found.onboard_R_ws, R_ms @ relative @ R_ms.mT, 1e-12)


# Fewer samples


@given(samples=st.integers(1, 40), factor=st.integers(1, 7))
def test_decimation_averages_what_was_felt_around_each_stamp(samples: int, factor: int) -> None:
    full = aboard(max(samples, factor))
    (less,) = decimate([full], factor)
    assert len(less.imu) == len(full.imu) // factor
    assert torch.equal(less.imu.t, less.truth.t)
    assert less.onboard_R_ws is not None
    assert full.onboard_R_ws is not None
    for i in range(len(less.imu)):
        joined = slice(i * factor, (i + 1) * factor)
        centre = i * factor + factor // 2
        assert_near(less.imu.acc_s[i], full.imu.acc_s[joined].mean(0), 1e-14)
        assert_near(less.imu.gyr_s[i], full.imu.gyr_s[joined].mean(0), 1e-14)
        assert less.imu.t[i] == full.imu.t[centre]
        assert torch.equal(less.truth.R_ws[i], full.truth.R_ws[centre])
        assert torch.equal(less.truth.p_w[i], full.truth.p_w[centre])
        assert torch.equal(less.truth.v_w[i], full.truth.v_w[centre])
        assert torch.equal(less.onboard_R_ws[i], full.onboard_R_ws[centre])


def test_decimation_by_one_is_nothing() -> None:
    full = aboard(9)
    assert decimate([full], 1)[0] is full


@pytest.mark.parametrize("factor", [0, -2])
def test_decimation_by_less_than_one_is_refused(factor: int) -> None:
    with pytest.raises(ValueError, match=f"factor must be 1 or more; found {factor}"):
        decimate([aboard(9)], factor)


def test_decimation_keeps_the_name_and_the_lack_of_an_attitude() -> None:
    full = replace(aboard(9, "flight"), onboard_R_ws=None)
    (less,) = decimate([full], 3)
    assert less.name == "flight"
    assert less.onboard_R_ws is None


def test_decimation_and_remounting_commute() -> None:
    full, R_ms = aboard(41), rotations(1, torch.float64)[0]
    (one,), (other,) = decimate([full.remounted(R_ms)], 4), [decimate([full], 4)[0].remounted(R_ms)]
    for name in TENSORS:
        here, there = (getattr(Corpus.join([r]), name) for r in (one, other))
        assert_near(here, there, 1e-13)


def test_decimation_damps_what_it_cannot_carry() -> None:
    """A vibration at the new rate is gone; one sample in four would have kept it whole."""
    full = aboard(400)
    fast = torch.cos(2 * torch.pi * torch.arange(400).double() / 4)
    imu = replace(full.imu, acc_s=fast.unsqueeze(1).expand(400, 3).contiguous())
    (less,) = decimate([replace(full, imu=imu)], 4)
    assert float(imu.acc_s[::4].abs().max()) == 1
    assert_near(less.imu.acc_s, torch.zeros(3).double(), 1e-12)


# Windows


@given(lengths=LENGTHS, length=st.integers(1, 15))
def test_no_window_crosses_into_another_recording(lengths: list[int], length: int) -> None:
    windows = WindowSet(Corpus.join(several(lengths)), length, Quantity.VELOCITY)
    last = torch.arange(len(windows))
    index = windows.index(last)
    assert index.shape == (sum(lengths), length)
    assert torch.equal(index[:, -1], last)
    assert bool((index.diff(dim=1) >= 0).all())
    assert bool((index.diff(dim=1) <= 1).all())
    number = torch.cat([torch.full((n,), i) for i, n in enumerate(lengths)])
    assert torch.equal(number[index], number.unsqueeze(1).expand(-1, length))


@given(lengths=LENGTHS, length=st.integers(1, 15))
def test_a_displacement_stays_in_its_recording(lengths: list[int], length: int) -> None:
    recordings = several(lengths)
    windows = WindowSet(Corpus.join(recordings), length, Quantity.DISPLACEMENT)
    moved = windows.motion_w(torch.arange(len(windows)))
    p_w = [r.truth.p_w for r in recordings]
    expected = [p[i] - p[max(0, i - length + 1)] for p in p_w for i in range(len(p))]
    assert torch.equal(moved, torch.stack(expected))


def test_the_attitude_of_windows_is_the_one_asked_for() -> None:
    corpus, last = Corpus.join([aboard(20), aboard(20)]), torch.tensor([7, 33])
    for attitude, R_ws in (
        (AttitudeSource.TRUTH, corpus.R_ws),
        (AttitudeSource.ONBOARD, corpus.onboard_R_ws),
    ):
        windows = WindowSet(corpus, 4, Quantity.VELOCITY, attitude)
        assert torch.equal(windows.windows(last).R_ws, R_ws[windows.index(last)])
        assert torch.equal(windows.motion_w(last), corpus.v_w[last])


def test_a_part_of_a_corpus_is_the_recording_it_was_made_of() -> None:
    made = [recording(40, torch.float32), recording(30, torch.float32)]
    joined = Corpus.join(made)
    for number, whole in enumerate(made):
        alone, again = joined.part(number), joined.recording(number)
        assert alone.names == (whole.name,)
        assert torch.equal(alone.start, torch.zeros(len(whole.imu), dtype=torch.int64))
        assert torch.equal(again.imu.acc_s, whole.imu.acc_s)
        assert torch.equal(again.truth.R_ws, whole.truth.R_ws)
        assert again.onboard_R_ws is None
