import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ginio.evaluation import statistics
from ginio.evaluation.statistics import bootstrap, compare

VALUES = st.lists(st.floats(-10, 10), min_size=1, max_size=12)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 1000)


def double(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


# Intervals


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_intervals_cover_the_true_mean_as_often_as_they_say(draw: str) -> None:
    """A percentile interval of 30 values covers a little less than 95 %, of skewed ones 92 %."""
    generator = torch.Generator().manual_seed(1)
    data = torch.empty(400, 30, dtype=torch.float64)
    data = (
        data.normal_(3.0, 2.0, generator=generator)
        if draw == "normal"
        else data.exponential_(1 / 3.0, generator=generator)
    )
    intervals = [bootstrap(row, seed=i) for i, row in enumerate(data)]
    covered = sum(x.low <= 3.0 <= x.high for x in intervals) / len(intervals)
    assert 0.88 < covered < 0.975
    misses = [sum(x.high < 3.0 for x in intervals), sum(x.low > 3.0 for x in intervals)]
    assert min(misses) > 0


def test_the_width_is_that_of_a_mean() -> None:
    values = torch.randn(400, dtype=torch.float64)
    found = bootstrap(values)
    half = 1.96 * float(values.std(correction=0)) / math.sqrt(len(values))
    assert found.high - found.mean == pytest.approx(half, rel=0.05)
    assert found.mean - found.low == pytest.approx(half, rel=0.05)


@given(values=VALUES)
def test_an_interval_holds_its_mean_and_lies_within_the_values(values: list[float]) -> None:
    found = bootstrap(double(values))
    assert found.mean == pytest.approx(sum(values) / len(values), abs=1e-12)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.low - 1e-9 <= found.mean <= found.high + 1e-9
    assert found.median == pytest.approx(sorted(values)[(len(values) - 1) // 2])


@given(values=VALUES, shift=st.floats(-5, 5), factor=st.floats(0.1, 10))
def test_an_interval_follows_units(values: list[float], shift: float, factor: float) -> None:
    one, other = bootstrap(double(values)), bootstrap(factor * double(values) + shift)
    for name in ("mean", "low", "high", "median"):
        expected = factor * getattr(one, name) + shift
        assert getattr(other, name) == pytest.approx(expected, abs=1e-9)


def test_a_seed_decides_the_interval() -> None:
    values = torch.randn(20)
    assert bootstrap(values, seed=3) == bootstrap(values, seed=3)
    assert bootstrap(values, seed=3) != bootstrap(values, seed=4)
    state = torch.get_rng_state()
    compare(values, values + 1)
    assert torch.equal(torch.get_rng_state(), state)


def test_one_recording_has_an_interval_of_no_width() -> None:
    found = bootstrap(torch.tensor([0.25]))
    assert (found.mean, found.low, found.high, found.median) == (0.25, 0.25, 0.25, 0.25)


# Comparisons


def exact_p(difference: list[float]) -> float:
    """Over every pattern of signs."""
    means = [
        abs(sum(s * d for s, d in zip(signs, difference, strict=True)))
        for signs in product((1, -1), repeat=len(difference))
    ]
    return sum(m >= abs(sum(difference)) - 1e-12 for m in means) / len(means)


@given(difference=st.lists(st.floats(-1, 1), min_size=1, max_size=9))
def test_a_p_value_is_that_of_every_pattern_of_signs(difference: list[float]) -> None:
    other = torch.randn(len(difference), dtype=torch.float64)
    found = compare(other + double(difference), other)
    rounded = (other + double(difference) - other).tolist()
    expected = exact_p(rounded)
    # Five standard deviations of a share of ten thousand.
    assert found.p_value == pytest.approx(expected, abs=0.025)
    assert found.difference.mean == pytest.approx(sum(rounded) / len(rounded), abs=1e-12)


def test_a_difference_that_is_always_the_same_is_as_surprising_as_signs_allow() -> None:
    values = torch.rand(12, dtype=torch.float64)
    assert compare(values + 0.1, values).p_value == pytest.approx(2 / 2**12, abs=5e-4)
    many = torch.rand(60, dtype=torch.float64)
    assert compare(many + 0.1, many).p_value == 1 / (statistics.RESAMPLES + 1)


def test_no_difference_is_no_surprise() -> None:
    values = torch.rand(12)
    found = compare(values, values)
    assert found.p_value == 1
    assert (found.difference.low, found.difference.high) == (0, 0)
    assert compare(torch.tensor([1.0]), torch.tensor([3.0])).p_value == 1


@pytest.mark.usefixtures("quick")
def test_without_an_effect_every_p_value_is_as_likely() -> None:
    generator = torch.Generator().manual_seed(2)
    data = torch.randn(400, 20, generator=generator, dtype=torch.float64)
    p = torch.tensor(
        [compare(row, torch.zeros(20).double(), seed=i).p_value for i, row in enumerate(data)]
    )
    for level in (0.05, 0.2, 0.5, 0.8):
        share = float((p <= level).double().mean())
        assert share == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / 400))


def test_pairs_matter() -> None:
    """Recordings that differ much between themselves hide nothing that all of them share."""
    hard = torch.linspace(0, 100, 20, dtype=torch.float64)
    worse = hard + 0.1 + 0.01 * torch.randn(20, dtype=torch.float64)
    found = compare(worse, hard)
    assert found.p_value < 1e-3
    assert 0.05 < found.difference.low < found.difference.high < 0.15
    assert compare(worse, hard.flip(0)).p_value > 0.5


def test_the_order_of_two_runs_turns_the_sign_only() -> None:
    a, b = torch.rand(2, 15, dtype=torch.float64)
    one, other = compare(a, b), compare(b, a)
    assert one.difference.mean == -other.difference.mean
    assert one.p_value == other.p_value
    assert one.difference.low == pytest.approx(-other.difference.high, abs=1e-12)


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_run_without_a_score_is_not_significant(broken: float) -> None:
    values = torch.rand(10)
    bad = values.clone()
    bad[3] = broken
    assert compare(bad, values).p_value == 1
