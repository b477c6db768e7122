import math

import pytest
import torch
from strategies import Sampler, assert_near, each_sampler, recording, rotations
from torch import Tensor

from ginio.core import ImuSequence, Recording, Trajectory

SAMPLES = 30


def sequence(t: Tensor) -> ImuSequence:
    return ImuSequence(t, torch.zeros(len(t), 3), torch.zeros(len(t), 3))


def path(t: Tensor) -> Trajectory:
    zeros = torch.zeros(len(t), 3)
    return Trajectory(t, torch.eye(3).repeat(len(t), 1, 1), zeros, zeros)


both_kinds = pytest.mark.parametrize("make", [sequence, path], ids=["imu", "truth"])


def specific_force_w(source: Recording) -> Tensor:
    return torch.einsum("tij,tj->ti", source.truth.R_ws, source.imu.acc_s)


@both_kinds
@pytest.mark.parametrize("repeat", [0.0, -0.5], ids=["repeated", "backward"])
def test_a_stamp_that_does_not_rise_is_refused_with_its_index(make: Sampler, repeat: float) -> None:
    t = torch.arange(6, dtype=torch.float64)
    t[4] = t[3] + repeat
    with pytest.raises(ValueError, match=r"sample 4 at \d\.\d+ s follows 3\.0+ s"):
        make(t)


@both_kinds
@pytest.mark.parametrize("stamp", [math.nan, math.inf])
def test_a_stamp_that_is_not_finite_is_refused(make: Sampler, stamp: float) -> None:
    t = torch.arange(6, dtype=torch.float64)
    t[5] = stamp
    with pytest.raises(ValueError, match="not finite"):
        make(t)


@pytest.mark.bare
@both_kinds
def test_stamps_of_another_precision_are_refused(make: Sampler) -> None:
    with pytest.raises(ValueError, match=r"float64 \(time,\); found torch\.float32 \(6,\)"):
        make(torch.arange(6, dtype=torch.float32))


@pytest.mark.bare
@both_kinds
def test_stamps_of_another_shape_are_refused(make: Sampler) -> None:
    with pytest.raises(ValueError, match=r"found torch\.float64 \(6, 1\)"):
        make(torch.arange(6, dtype=torch.float64).unsqueeze(1))


@pytest.mark.bare
def test_signals_of_another_length_are_refused() -> None:
    t, good = torch.arange(6, dtype=torch.float64), torch.zeros(6, 3)
    eye = torch.eye(3).repeat(6, 1, 1)
    with pytest.raises(ValueError, match=r"acc_s must be \(6, 3\); found \(5, 3\)"):
        ImuSequence(t, good[:5], good)
    with pytest.raises(ValueError, match=r"gyr_s must be \(6, 3\); found \(6, 2\)"):
        ImuSequence(t, good, good[:, :2])
    with pytest.raises(ValueError, match=r"R_ws must be \(6, 3, 3\); found \(6, 3\)"):
        Trajectory(t, good, good, good)
    with pytest.raises(ValueError, match=r"p_w must be \(6, 3\); found \(5, 3\)"):
        Trajectory(t, eye, good[:5], good)
    with pytest.raises(ValueError, match=r"v_w must be \(6, 3\); found \(5, 3\)"):
        Trajectory(t, eye, good, good[:5])


@both_kinds
def test_length_is_the_number_of_samples(make: Sampler) -> None:
    assert len(make(torch.arange(6, dtype=torch.float64))) == 6


@each_sampler
def test_a_remount_keeps_the_specific_force_in_the_world(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    source, R_ms = recording(SAMPLES, dtype), rotations(1, dtype, sampler)[0]
    remounted = source.remounted(R_ms)
    assert_near(specific_force_w(remounted), specific_force_w(source), tol)
    assert remounted.truth.p_w is source.truth.p_w
    assert remounted.truth.v_w is source.truth.v_w


@each_sampler
def test_a_remount_turns_every_sample(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    source, R_ms = recording(SAMPLES, dtype), rotations(1, dtype, sampler)[0]
    remounted = source.remounted(R_ms)
    for i in range(SAMPLES):
        assert_near(remounted.imu.acc_s[i], R_ms @ source.imu.acc_s[i], tol)
        assert_near(remounted.imu.gyr_s[i], R_ms @ source.imu.gyr_s[i], tol)
        assert_near(remounted.truth.R_ws[i] @ R_ms, source.truth.R_ws[i], tol)


@each_sampler
def test_remounts_compose(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    source, R_ms = recording(SAMPLES, dtype), rotations(1, dtype, sampler)[0]
    R_nm = rotations(1, dtype)[0]
    twice, once = source.remounted(R_ms).remounted(R_nm), source.remounted(R_nm @ R_ms)
    assert_near(twice.imu.acc_s, once.imu.acc_s, tol)
    assert_near(twice.imu.gyr_s, once.imu.gyr_s, tol)
    assert_near(twice.truth.R_ws, once.truth.R_ws, tol)


def test_bias_correction_commutes_with_a_remount(dtype: torch.dtype, tol: float) -> None:
    imu, R_ms = recording(SAMPLES, dtype).imu, rotations(1, dtype)[0]
    bias_acc, bias_gyr = torch.randn(2, 3, dtype=dtype)
    corrected = imu.corrected(bias_acc, bias_gyr).rotated(R_ms)
    expected = imu.rotated(R_ms).corrected(R_ms @ bias_acc, R_ms @ bias_gyr)
    assert_near(corrected.acc_s, expected.acc_s, tol)
    assert_near(corrected.gyr_s, expected.gyr_s, tol)
    assert_near(imu.corrected(bias_acc, bias_gyr).acc_s + bias_acc, imu.acc_s, tol)
