"""A whole training step on a GPU, launched from Python, compiled, and replayed from a CUDA graph.

Run: python benchmarks/training.py --json benchmarks/results/training.json
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import torch

from ginio.data.corpus import Corpus, decimate
from ginio.data.synthetic import QuadrotorConfig, fly
from ginio.data.windows import WindowSet
from ginio.presets import NANOBENCH_STUDY
from ginio.training.provenance import commit, versions
from ginio.training.trainer import Trainer

NETWORKS = ("resnet1d", "ginio-rd", "ginio-rs", "airio", "ginio-a-reduced", "ginio-e", "eqnio-o2")
Way = Literal["launched", "compiled", "captured", "both"]
FLIGHTS = 8
STEPS_A_ROUND = 10


def trainer_of(name: str, way: Way, flights: Corpus, device: str) -> Trainer:
    """A network of the study, its loss and gradients found in one of the ways."""
    config = replace(
        NANOBENCH_STUDY[name].config,
        device=device,
        is_compiled=way in {"compiled", "both"},
        is_captured=way in {"captured", "both"},
    )
    windows = WindowSet(flights.to(device), config.network.window, config.quantity)
    return Trainer(config, windows, windows, Path(tempfile.mkdtemp()))


def steps(trainer: Trainer) -> float:
    """Milliseconds of one step, over some."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for step in range(1, STEPS_A_ROUND + 1):
        trainer.take_step(step)
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / STEPS_A_ROUND


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, choices=list(NANOBENCH_STUDY))
    parser.add_argument(
        "--ways", nargs="+", default=("launched", "captured"), choices=get_args(Way)
    )
    arguments = parser.parse_args()
    flights = Corpus.join(decimate(fly(QuadrotorConfig(), FLIGHTS, seed=0), 4))
    found: dict[str, dict[str, float]] = {}
    for name in arguments.networks:
        trainers = {w: trainer_of(name, w, flights, arguments.device) for w in arguments.ways}
        for trainer in trainers.values():
            steps(trainer)
        times = {way: [] for way in trainers}
        for _ in range(arguments.rounds):
            for way, trainer in trainers.items():
                times[way].append(steps(trainer))
        found[name] = {way: statistics.median(each) for way, each in times.items()}
        first = found[name][arguments.ways[0]]
        ratios = (f"{way} {ms:.2f} ms, {first / ms:.2f} times" for way, ms in found[name].items())
        print(name, *ratios, sep="  ", flush=True)
    if arguments.json is not None:
        document = {
            "command": "python benchmarks/training.py",
            "commit": commit(),
            "machine": {"gpu": torch.cuda.get_device_name(arguments.device), **versions()},
            "batch": NANOBENCH_STUDY[arguments.networks[0]].config.batch,
            "milliseconds of a step": found,
        }
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
