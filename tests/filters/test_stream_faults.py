"""Faults of a stream (F01-F13, F19): synthetic motion, fault after 8 s, ATE against clean."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache

import pytest
import torch
from flights import F64, Flight, fly, measure, noisy
from scipy.stats import chi2
from torch import Tensor

from ginio.core.measurement import Quantity
from ginio.filters.belief import Belief
from ginio.filters.inekf import InekfConfig
from ginio.filters.intake import Clean, Intake, IntakeConfig, Kind, Status, receive
from ginio.filters.observation import Frame
from ginio.filters.start import StartStd, start_at_truth
from ginio.filters.strapdown import ImuNoise
from ginio.filters.stream import follow
from ginio.geometry import so3

RATE_HZ, SECONDS, FAULT_S = 200.0, 24.0, 8.0
PERIOD_S = 1 / RATE_HZ
FAULT, EVERY = round(FAULT_S * RATE_HZ), 20
FAULT_STEP = FAULT // EVERY
NOISE = ImuNoise(acc=2e-3, gyr=2e-4, acc_walk=1e-4, gyr_walk=1e-5)
FILTER = InekfConfig(clones=2, noise=NOISE).build()
STREAM = IntakeConfig(period_s=PERIOD_S)
Stream = tuple[Tensor, Tensor, Tensor]


@cache
def flown(seed: int = 0) -> tuple[Flight, Flight]:
    torch.manual_seed(seed)
    flight = fly(1, SECONDS, RATE_HZ)
    zero = torch.zeros(1, 3, dtype=F64)
    return flight, noisy(flight, NOISE, zero, zero)[0]


def stream_of(flight: Flight) -> Stream:
    t = PERIOD_S * torch.arange(1, len(flight.dt) + 1, dtype=F64)
    return t, flight.acc_s[0].clone(), flight.gyr_s[0].clone()


def cleaned(
    stream: Stream, config: IntakeConfig = STREAM, every: int = 200
) -> tuple[Intake, Clean]:
    """Received in pieces, as a live stream would be, and joined."""
    intake, parts = Intake.begin(config), []
    count = len(stream[0])
    for begin in range(0, count, every):
        piece = (x[begin : begin + every] for x in stream)
        intake, clean = receive(config, intake, *piece, is_end=begin + every >= count)
        parts.append(clean)
    names = [f.name for f in fields(Clean)]
    return intake, Clean(*(torch.cat([getattr(p, n) for p in parts]) for n in names))


def part_of(clean: Clean, part: slice) -> Clean:
    return Clean(*(getattr(clean, f.name)[part] for f in fields(Clean)))


def tracked(
    clean: Clean, flight: Flight, *, after: Callable[[float, Belief], None] = lambda *_: None
) -> Tensor:
    """Position errors at 10 Hz, corrected by sensor-frame velocities from the truth."""
    std = StartStd(bias_acc=0.01, bias_gyr=1e-3, tilt=1e-3)
    belief = FILTER.start(
        start_at_truth(flight.R_ws[:, 0], flight.v_w[:, 0], flight.p_w[:, 0], std)
    )
    generator = torch.Generator().manual_seed(7)
    errors = []
    for number, begin in enumerate(range(0, len(clean), EVERY)):
        belief = follow(FILTER, belief, part_of(clean, slice(begin, begin + EVERY)))
        k = min(round(float(belief.t) / PERIOD_S), len(flight.dt))
        v_s = so3.rotate(flight.R_ws[:, k].mT, flight.v_w[:, k])
        said = measure(v_s + 0.05 * torch.randn(1, 3, dtype=F64, generator=generator), 0.05)
        said = replace(said, quantity=Quantity.VELOCITY)
        whole = bool((clean.kind[begin : begin + EVERY] <= Kind.INTERPOLATED.value).all())
        if whole:
            belief, _ = FILTER.update(belief, said, end=number, frame=Frame.LAST)
        errors.append((belief.state.p_w - flight.p_w[:, k]).norm())
        assert torch.isfinite(belief.P).all()
        after(float(belief.t), belief)
    return torch.stack(errors)


def ate(errors: Tensor) -> float:
    return float(errors.square().mean().sqrt())


@cache
def clean_ate() -> float:
    flight, samples = flown()
    return ate(tracked(cleaned(stream_of(samples))[1], flight))


def without(stream: Stream, gap: slice) -> Stream:
    keep = torch.ones(len(stream[0]), dtype=torch.bool)
    keep[gap] = False
    return tuple(x[keep] for x in stream)


def same(a: Clean, b: Clean) -> bool:
    return all(torch.equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(Clean))


def test_a_good_stream_passes_unchanged() -> None:
    stream = stream_of(flown()[1])
    intake, clean = cleaned(stream)
    assert torch.equal(clean.acc_s, stream[1])
    assert torch.equal(clean.gyr_s, stream[2])
    assert (clean.dt - PERIOD_S).abs().max() < 1e-9
    assert (clean.kind == 0).all()
    assert (clean.extra_std == 0).all()
    assert sum(getattr(intake.counters, f.name) for f in fields(intake.counters)) == 0


@pytest.mark.parametrize("every", [7, 100, 100_000])
def test_pieces_do_not_matter(every: int) -> None:
    stream = without(stream_of(flown()[1]), slice(FAULT, FAULT + 30))
    whole = cleaned(stream)[1]
    pieces = cleaned(stream, every=every)[1]
    assert torch.equal(whole.kind, pieces.kind)
    torch.testing.assert_close(whole.t, pieces.t, rtol=0, atol=1e-9)
    assert torch.equal(whole.extra_std, pieces.extra_std)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_f01_one_sample_is_not_finite(value: float) -> None:
    flight, samples = flown()
    stream = stream_of(samples)
    stream[1][FAULT, 1] = value
    intake, clean = cleaned(stream)
    assert intake.counters.nonfinite == 1
    assert ate(tracked(clean, flight)) <= 1.02 * clean_ate()


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_f02_a_burst_is_a_gap(count: int) -> None:
    stream = stream_of(flown()[1])
    stream[2][FAULT : FAULT + count] = math.nan
    intake, clean = cleaned(stream)
    assert intake.counters.nonfinite == count
    gap = cleaned(without(stream, slice(FAULT, FAULT + count)))[1]
    assert same(clean, gap)


def test_f03_a_sample_comes_twice() -> None:
    stream = stream_of(flown()[1])
    again = tuple(torch.cat((x[:FAULT], x[FAULT - 1 : FAULT], x[FAULT:])) for x in stream)
    intake, clean = cleaned(again)
    assert intake.counters.duplicate == 1
    assert same(clean, cleaned(stream)[1])


def test_f04_a_stamp_comes_twice() -> None:
    stream = stream_of(flown()[1])
    t, acc_s, gyr_s = (torch.cat((x[:FAULT], x[FAULT - 1 : FAULT], x[FAULT:])) for x in stream)
    acc_s[FAULT] += 5
    intake, clean = cleaned((t, acc_s, gyr_s))
    assert intake.counters.conflicting == 1
    assert same(clean, cleaned(stream)[1])


@pytest.mark.parametrize("steps", [1, 3])
def test_f05_two_samples_are_swapped(steps: int) -> None:
    stream = stream_of(flown()[1])
    order = torch.arange(len(stream[0]))
    order[FAULT], order[FAULT + steps] = FAULT + steps, FAULT
    intake, clean = cleaned(tuple(x[order] for x in stream))
    assert intake.counters.reordered == steps
    assert same(clean, cleaned(stream)[1])


def test_f05_too_late_to_be_put_in_order() -> None:
    flight, samples = flown()
    stream = stream_of(samples)
    order = torch.cat((torch.arange(FAULT), torch.arange(FAULT + 1, FAULT + 11)))
    order = torch.cat((order, torch.tensor([FAULT]), torch.arange(FAULT + 11, len(stream[0]))))
    intake, clean = cleaned(tuple(x[order] for x in stream))
    assert intake.counters.late == 1
    assert intake.counters.interpolated == 1
    assert (clean.t.diff() > 0).all()
    assert ate(tracked(clean, flight)) <= 1.02 * clean_ate()


def test_f06_two_samples_are_missing() -> None:
    flight, samples = flown()
    intake, clean = cleaned(without(stream_of(samples), slice(FAULT, FAULT + 2)))
    assert intake.counters.interpolated == 2
    assert (clean.kind == Kind.INTERPOLATED.value).sum() == 2
    assert len(clean) == len(samples.dt)
    assert ate(tracked(clean, flight)) <= 1.02 * clean_ate()


@pytest.mark.parametrize("gap_s", [0.04, 0.2, 0.5])
def test_f07_a_short_gap_is_held_with_honest_doubt(gap_s: float) -> None:
    """Over 50 runs position is inside what the filter says at the end of the gap."""
    runs, count = 50, round(gap_s * RATE_HZ)
    flight = fly(runs, 1.5, RATE_HZ)
    belief = FILTER.start(
        start_at_truth(flight.R_ws[:, 0], flight.v_w[:, 0], flight.p_w[:, 0], StartStd())
    )
    streams = [
        without((PERIOD_S * torch.arange(1, 301, dtype=F64), a, g), slice(100, 100 + count))
        for a, g in zip(flight.acc_s, flight.gyr_s, strict=True)
    ]
    cleans = [cleaned(s)[1] for s in streams]
    assert {int((c.kind == Kind.HELD.value).sum()) for c in cleans} == {count}
    acc_s, gyr_s, extra = (
        torch.stack([getattr(c, n) for c in cleans]) for n in ("acc_s", "gyr_s", "extra_std")
    )
    end = FILTER.propagate(belief, acc_s, gyr_s, cleans[0].dt, extra)
    error = (end.state.p_w - flight.p_w[:, -1]).unsqueeze(-1)
    P = FILTER.export(end).covariance[:, 6:9, 6:9]
    nees = (error.mT @ torch.linalg.solve(P, error)).flatten()
    assert nees.mean() <= chi2.ppf(0.975, 150) / 50
    assert (nees <= chi2.ppf(0.95, 3)).double().mean() >= 0.95


@pytest.mark.parametrize("gap_s", [1.5, 5.0])
def test_f08_a_gap_of_seconds_is_coasted(gap_s: float) -> None:
    flight, samples = flown()
    gap = slice(FAULT, FAULT + round(gap_s * RATE_HZ))
    stream = stream_of(samples)
    before, _ = cleaned(tuple(x[:FAULT] for x in stream))
    assert before.status(STREAM, FAULT_S + 0.04) is Status.HEALTHY
    assert before.status(STREAM, FAULT_S + 0.04 + 0.05) is Status.DEGRADED
    intake, clean = cleaned(without(stream, gap))
    assert intake.counters.coasted == round(gap_s * RATE_HZ)
    assert intake.counters.resets == 0
    deviation = []
    errors = tracked(
        clean, flight, after=lambda _, b: deviation.append(FILTER.export(b).std[0, 6:9])
    )
    std = torch.stack(deviation).norm(dim=-1)
    assert (errors[FAULT_STEP:] <= 3 * std[FAULT_STEP:]).double().mean() >= 0.95
    assert std[FAULT_STEP + 5] > 3 * std[FAULT_STEP - 1]


def test_f09_after_ten_seconds_a_stream_begins_anew() -> None:
    flight, samples = flown()
    stream = without(stream_of(samples), slice(FAULT, FAULT + round(12 * RATE_HZ)))
    before, _ = cleaned(tuple(x[:FAULT] for x in stream))
    assert before.status(STREAM, FAULT_S + 11) is Status.LOST
    intake, clean = cleaned(stream)
    assert intake.counters.resets == 1
    assert clean.is_reset.sum() == 1
    assert clean.dt.max() < 2 * PERIOD_S
    belief = FILTER.start(start_at_truth(flight.R_ws[:, 0], flight.v_w[:, 0], flight.p_w[:, 0]))
    at = int(clean.is_reset.nonzero())
    held = follow(FILTER, belief, part_of(clean, slice(0, at)))
    after = follow(FILTER, held, part_of(clean, slice(at, at + 1)))
    assert after.health.resets.tolist() == [1]
    assert (FILTER.export(after).std[:, 3:6] >= 1).all()
    assert (after.state.p_w - held.state.p_w).norm() < 0.1
    assert torch.isfinite(after.P).all()


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0, -1.7e9])
def test_f10_the_clock_jumps(jump_s: float) -> None:
    stream = stream_of(flown()[1])
    t = 1.7e9 + stream[0] if jump_s < -1e6 else stream[0].clone()
    t[FAULT:] += jump_s
    intake, clean = cleaned((t, *stream[1:]))
    assert intake.counters.resets == 1
    assert clean.dt.max() < 2 * PERIOD_S
    assert (clean.t.diff() > 0).all()
    assert len(clean) == len(t)


def test_f11_jitter_is_used_as_it_is() -> None:
    flight, samples = flown()
    t, acc_s, gyr_s = stream_of(samples)
    t = t + PERIOD_S * 0.3 * (2 * torch.rand_like(t) - 1)
    intake, clean = cleaned((t, acc_s, gyr_s))
    assert intake.jitter_s == pytest.approx(0.3 * PERIOD_S * (2 / 3) ** 0.5, rel=0.3)
    assert intake.counters.interpolated == 0
    assert ate(tracked(clean, flight)) <= 1.05 * clean_ate()


def test_f11_drift_is_used_as_it_is() -> None:
    t, acc_s, gyr_s = stream_of(flown()[1])
    intake, clean = cleaned((1.01 * t, acc_s, gyr_s))
    assert len(clean) == len(t)
    assert intake.counters.rate_changes == 0


def test_f12_saturation_is_flagged_and_doubted() -> None:
    flight, samples = flown()
    config = replace(STREAM, acc_range=8.0)
    stream = stream_of(samples)
    clipped = stream[1].clamp(-8.0, 8.0)
    second = slice(FAULT, FAULT + 300)
    stream[1][second] = clipped[second]
    stream[1][FAULT : FAULT + 300, 0] = 8.0
    intake, _ = cleaned(tuple(x[: FAULT + 150] for x in stream), config)
    assert intake.is_clipping
    _, clean = cleaned(stream, replace(STREAM, acc_range=8.0))
    deviation = []
    errors = tracked(
        clean, flight, after=lambda _, b: deviation.append(FILTER.export(b).std[0, 6:9])
    )
    assert torch.isfinite(errors).all()
    std = torch.stack(deviation).norm(dim=-1)
    assert (errors[FAULT_STEP:] <= 2.8 * std[FAULT_STEP:]).double().mean() >= 0.95


@pytest.mark.parametrize("axes", [(0,), (4,), (0, 1, 2, 3, 4, 5)])
def test_f13_an_axis_is_stuck(axes: tuple[int, ...]) -> None:
    t, acc_s, gyr_s = stream_of(flown()[1])
    values = torch.cat((acc_s, gyr_s), -1)
    values[FAULT : FAULT + 200, list(axes)] = values[FAULT - 1, list(axes)]
    intake, clean = cleaned((t, values[:, :3], values[:, 3:]))
    found = (clean.extra_std > 0).any(-1).nonzero().flatten()
    assert int(found[0]) - FAULT <= 100
    assert len(found) == pytest.approx(101, abs=3)
    assert set((clean.extra_std > 0).any(0).nonzero().flatten().tolist()) == set(axes)
    assert intake.counters.stuck == len(found)


def test_f19_the_rate_halves() -> None:
    t, acc_s, gyr_s = stream_of(flown()[1])
    keep = torch.ones(len(t), dtype=torch.bool)
    keep[FAULT::2] = False
    intake, clean = cleaned((t[keep], acc_s[keep], gyr_s[keep]))
    assert intake.counters.rate_changes == 1
    made_up = clean.t[clean.kind != 0]
    assert made_up[-1] - made_up[0] <= 2.0
    assert (clean.t.diff() > 0).all()
