"""A network slower than real time (F29): the newest window first, and no sample waits for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from flights import Flight, fly, measure
from runs import Schedule, truth

from ginio.core.measurement import Measurement
from ginio.filters.inekf import InekfConfig
from ginio.filters.observation import Frame
from ginio.filters.start import start_at_truth
from ginio.runtime.backlog import Backlog

EVERY, SPAN, SLOWNESS = 5, 20, 37
SCHEDULE = Schedule(every=EVERY, span=SPAN, frame=Frame.LAST)


@dataclass
class SlowNetwork:
    """Answers when it is told to, about the newest window there is."""

    flight: Flight
    windows: Backlog[int] = field(default_factory=Backlog)
    answers: Backlog[tuple[int, Measurement]] = field(default_factory=Backlog)
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    asked: list[int] = field(default_factory=list)

    def work(self) -> None:
        while True:
            self.turn.acquire()
            if (end := self.windows.take()) is None:
                return
            self.asked.append(end)
            self.answers.put((end, measure(truth(self.flight, SCHEDULE, end), 0.02)))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        thread = threading.Thread(target=self.work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.windows.close()
            while self.windows.take(0.0) is not None:
                pass
            self.turn.release()
            thread.join(5)
        assert not thread.is_alive()


def test_f29_a_slow_network_drops_windows_and_holds_up_no_sample() -> None:
    """An answer takes as long as 37 windows, and is applied to its clones when it comes."""
    flight = fly(1, 20.0, 100.0)
    filter_ = InekfConfig(clones=64).build()
    start = start_at_truth(flight.R_ws[:, 0], flight.v_w[:, 0], flight.p_w[:, 0])
    belief, network, put = filter_.clone(filter_.start(start), 0), SlowNetwork(flight), 0
    with network.at_work():
        for end in range(EVERY, len(flight.dt) + 1, EVERY):
            part = slice(end - EVERY, end)
            samples = (flight.acc_s[:, part], flight.gyr_s[:, part], flight.dt[part])
            belief = filter_.propagate(belief, *samples, name=end)
            if end < SPAN * EVERY:
                continue
            network.windows.put(end)
            put += 1
            if put % SLOWNESS == 0:
                network.turn.release()
            elif put % SLOWNESS == SLOWNESS // 2 and put > SLOWNESS:
                name, said = network.answers.take(5.0) or (0, None)
                assert said is not None
                begin = name - SPAN * EVERY
                belief, _ = filter_.update(belief, said, begin=begin, end=name, frame=Frame.LAST)
    answered = len(network.asked)
    assert answered == 10
    assert int(belief.health.accepted) == 9
    assert int(belief.health.skipped) == 0
    assert network.windows.dropped > 300
    assert all(late - soon > 20 * EVERY for soon, late in pairwise(network.asked))
    assert float((belief.state.p_w - flight.p_w[:, -1]).norm()) < 0.2
    assert torch.isfinite(belief.P).all()
