"""Speed of the filters without a network: one stream against real time, many against one.

A stream of 200 Hz in chunks of ten samples, 20 clones in use, a displacement at 20 Hz. Rounds of
both sizes take turns; times are those of the process, so that other work on the core is not
counted, and quartiles say how much it disturbs nevertheless.

Run: python benchmarks/filters.py --json benchmarks/results/filters.json
"""

import argparse
import json
import math
import os
import platform
import statistics
import time
from pathlib import Path

import torch
from networks import commit

from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.filters.belief import Belief
from ginio.filters.cloning import CloningFilter
from ginio.filters.inekf import InekfConfig
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.start import start_at_truth

FILTERS = {"scekf": (ScekfConfig, Frame.HEADING), "inekf": (InekfConfig, Frame.LAST)}
DT, CHUNK, SPAN, SLOTS = 0.005, 10, 20, 21
MANY = 64


class Stream:
    """Runs at rest that are propagated and corrected for ever."""

    def __init__(self, filter_: CloningFilter, frame: Frame, runs: int) -> None:
        zero = torch.zeros(runs, 3, dtype=torch.float64)
        eye = torch.eye(3, dtype=torch.float64)
        self.filter, self.frame, self.number = filter_, frame, 0
        start = start_at_truth(eye.expand(runs, 3, 3), zero, zero)
        self.belief: Belief = filter_.clone(filter_.start(start), 0)
        up = torch.tensor([0.0, 0.0, 9.80665], dtype=torch.float64)
        self.acc_s = up + 0.02 * torch.randn(runs, CHUNK, 3, dtype=torch.float64)
        self.gyr_s = 0.002 * torch.randn(runs, CHUNK, 3, dtype=torch.float64)
        self.dt = torch.full((CHUNK,), DT, dtype=torch.float64)
        sigma = Covariance(eye.expand(runs, 3, 3), torch.full_like(zero, math.log(0.1)))
        self.said = Measurement(zero, sigma, Quantity.DISPLACEMENT)

    def step(self) -> None:
        """50 ms of every run."""
        self.number += 1
        belief = self.filter.propagate(
            self.belief, self.acc_s, self.gyr_s, self.dt, name=self.number, donate=True
        )
        begin = self.number - SPAN
        if begin >= 0:
            belief, _ = self.filter.update(
                belief,
                self.said,
                begin=begin,
                end=self.number,
                frame=self.frame,
                donate=True,
            )
        self.belief = belief

    def seconds(self, steps: int) -> float:
        """Of the processor, for one step."""
        begun = time.process_time()
        for _ in range(steps):
            self.step()
        return (time.process_time() - begun) / steps


def measured(config: type, frame: Frame, rounds: int) -> dict:
    filter_ = config(clones=SLOTS).build()
    one, many = Stream(filter_, frame, 1), Stream(filter_, frame, MANY)
    for stream in (one, many):
        stream.seconds(SPAN + 5)
    pairs = [(one.seconds(20), many.seconds(4)) for _ in range(rounds)]
    real_time = [CHUNK * DT / single for single, _ in pairs]
    throughput = [MANY * single / batch for single, batch in pairs]
    return {
        "one stream, times real time": spread(real_time),
        f"{MANY} streams, total throughput over that of one": spread(throughput),
    }


def spread(values: list[float]) -> dict[str, object]:
    return {
        "median": statistics.median(values),
        "quartiles": statistics.quantiles(values, n=4)[::2],
        "best": max(values),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.inference_mode():
        results = {
            name: measured(config, frame, arguments.rounds)
            for name, (config, frame) in FILTERS.items()
        }
    result = {
        "command": "python benchmarks/filters.py",
        "commit": commit(),
        "machine": {
            "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "threads": 1,
            "load": os.getloadavg()[0],
            "torch": torch.__version__,
        },
        "chunk": CHUNK,
        "clones": SLOTS,
        "results": results,
    }
    for name, found in results.items():
        print(name, *(f"{what}: {s['median']:.1f}" for what, s in found.items()), sep="  ")
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
