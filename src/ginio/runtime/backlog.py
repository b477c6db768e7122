"""What waits for a network that is slower than its sensor: the newest goes first.

The thread that follows the sensor puts windows in and never waits; the one that asks the network
takes the newest and leaves the others. An answer that comes late belongs to the clones that were
made at its window's ends, and is applied to them whenever it comes.
"""

from collections import deque
from threading import Condition
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


class Backlog(Generic[ItemT]):
    """A place where one thread leaves things and another takes the newest."""

    def __init__(self, capacity: int = 1) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be 1 or more; found {capacity}")
        self.dropped = 0
        """How many were never taken, because newer ones came."""
        self._waiting: deque[ItemT] = deque(maxlen=capacity)
        self._changed = Condition()
        self._is_closed = False

    def put(self, item: ItemT) -> None:
        """Leave the newest item; the oldest makes room for it."""
        with self._changed:
            self.dropped += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(item)
            self._changed.notify()

    def take(self, timeout_s: float | None = None) -> ItemT | None:
        """The newest item, as soon as there is one; older ones keep waiting behind it.

        None after the timeout, and when nothing will come any more.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed, timeout_s)
            return self._waiting.pop() if self._waiting else None

    def close(self) -> None:
        """Nothing more will be put in; who waits need not."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
