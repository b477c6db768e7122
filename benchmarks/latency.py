"""How long a sample waits, while a network on another thread is slower than real time.

Run: python benchmarks/latency.py --json benchmarks/results/latency.json
"""

import argparse
import json
import os
import platform
import statistics
import threading
import time
from pathlib import Path

import torch
from networks import commit

import ginio
from ginio.core.window import SensorWindow
from ginio.filters.inekf import InekfConfig
from ginio.filters.start import start_at_truth
from ginio.runtime.backlog import Backlog

RATE_HZ, SECONDS = 200.0, 20.0
NETWORK = "ginio-rs-nanobench-filter"


def asking(windows: Backlog[SensorWindow], answered: list[float]) -> None:
    """Ask about the newest window, again and again."""
    run = ginio.load(NETWORK)
    frontend = run.frontend()
    with torch.inference_mode():
        while (window := windows.take()) is not None:
            begun = time.perf_counter()
            frontend.measure(window.represent(run.card.representation))
            answered.append(time.perf_counter() - begun)


def some_window() -> SensorWindow:
    """Of the length that the network wants."""
    length = ginio.load(NETWORK).card.network.window
    acc_s, gyr_s = torch.randn(2, 1, length, 3)
    return SensorWindow(acc_s, gyr_s, torch.eye(3).expand(1, length, 3, 3))


def followed(windows: Backlog[SensorWindow]) -> list[float]:
    """Milliseconds that each sample of a stream took, a window left for the network at each."""
    window = some_window()
    filter_ = InekfConfig(clones=21).build()
    zero = torch.zeros(1, 3, dtype=torch.float64)
    belief = filter_.start(start_at_truth(torch.eye(3).double()[None], zero, zero))
    samples = torch.randn(1, int(RATE_HZ * SECONDS), 1, 6, dtype=torch.float64)
    dt = torch.full((1,), 1 / RATE_HZ, dtype=torch.float64)
    waits, begun = list[float](), time.perf_counter()
    with torch.inference_mode():
        for k, sample in enumerate(samples.unbind(1)):
            time.sleep(max(0.0, begun + k / RATE_HZ - time.perf_counter()))
            came = time.perf_counter()
            belief = filter_.propagate(belief, sample[..., :3], sample[..., 3:], dt, donate=True)
            windows.put(window)
            waits.append(1e3 * (time.perf_counter() - came))
    return waits[200:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    windows, answered = Backlog[SensorWindow](), list[float]()
    network = threading.Thread(target=asking, args=(windows, answered), daemon=True)
    network.start()
    waits = followed(windows)
    windows.close()
    network.join()
    cuts = statistics.quantiles(waits, n=1000)
    result = {
        "command": "python benchmarks/latency.py",
        "commit": commit(),
        "machine": {
            "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "torch": torch.__version__,
        },
        "a sample, ms": {"p50": cuts[499], "p99": cuts[989], "p99.9": cuts[998], "max": max(waits)},
        "an answer, ms": 1e3 * statistics.median(answered),
        "windows asked for a second": RATE_HZ,
        "answered": len(answered),
        "dropped": windows.dropped,
    }
    print(json.dumps(result, indent=2))
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
