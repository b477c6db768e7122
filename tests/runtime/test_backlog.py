"""The newest goes first, and who puts never waits."""

import threading

import pytest

from ginio.runtime.backlog import Backlog


def test_the_newest_goes_first_and_what_is_dropped_is_counted() -> None:
    backlog = Backlog[int](capacity=2)
    for number in range(5):
        backlog.put(number)
    assert backlog.dropped == 3
    assert [backlog.take(), backlog.take(), backlog.take(0.0)] == [4, 3, None]
    backlog.close()
    assert backlog.take() is None
    with pytest.raises(ValueError, match="capacity must be 1 or more; found 0"):
        Backlog[int](capacity=0)


def test_who_waits_is_woken() -> None:
    backlog, taken = Backlog[str](), Backlog[str | None](capacity=2)

    def take_both() -> None:
        taken.put(backlog.take())
        taken.put(backlog.take())

    taker = threading.Thread(target=take_both, daemon=True)
    taker.start()
    backlog.put("window")
    assert taken.take(5.0) == "window"
    backlog.close()
    taker.join(5)
    assert not taker.is_alive()
    assert taken.take(0.0) is None
