"""Cost of each network against ResNet1D, interleaved in one run, as ratios.

Run: python benchmarks/networks.py --json benchmarks/results/networks.json
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from ginio.metrics.complexity import measure
from ginio.presets import NETWORKS
from ginio.training.losses import LikelihoodLoss

BASELINE = "resnet1d"
TIMED = ("ginio-rd", "ginio-rs", "ginio-rd-paper", "ginio-rs-paper")
Work = Callable[[nn.Module, torch.Tensor], object]


def infer(network: nn.Module, features: torch.Tensor) -> None:
    network.eval()
    with torch.inference_mode():
        network(features)


def train(network: nn.Module, features: torch.Tensor) -> None:
    network.train()
    network.zero_grad()
    LikelihoodLoss()(network, features, features[:, 0, :, -1]).backward()


def interleaved(networks: dict[str, nn.Module], work: Work, batch: int, rounds: int) -> dict:
    """Median time of each network over rounds that visit all of them, over the baseline's."""
    features = {
        name: torch.randn(batch, NETWORKS[name].channels, 3, NETWORKS[name].window)
        for name in networks
    }
    seconds: dict[str, list[float]] = {name: [] for name in networks}
    for round_ in range(rounds + 2):
        for name, network in networks.items():
            start = time.perf_counter()
            work(network, features[name])
            if round_ >= 2:
                seconds[name].append(time.perf_counter() - start)
    base = statistics.median(seconds[BASELINE])
    return {
        name: {
            "ratio": statistics.median(times) / base,
            "quartiles": [q / base for q in statistics.quantiles(times, n=4)[::2]],
        }
        for name, times in seconds.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--networks", nargs="+", default=TIMED, choices=list(NETWORKS))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    names = dict.fromkeys((*arguments.networks, BASELINE))
    networks = {name: NETWORKS[name].build() for name in names}
    result = {
        "command": "python benchmarks/networks.py",
        "commit": commit(),
        "machine": {
            "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "threads": arguments.threads,
            "torch": torch.__version__,
        },
        "counts": {
            name: vars_of(
                measure(network, torch.randn(1, NETWORKS[name].channels, 3, NETWORKS[name].window))
            )
            for name, network in networks.items()
        },
        "time against resnet1d": {
            "inference, batch 1": interleaved(networks, infer, 1, 10 * arguments.rounds),
            "inference, batch 256": interleaved(networks, infer, 256, arguments.rounds),
            "training step, batch 64": interleaved(networks, train, 64, arguments.rounds),
        },
    }
    for job, ratios in result["time against resnet1d"].items():
        print(job, *(f"{name} {r['ratio']:.2f}" for name, r in ratios.items()), sep="  ")
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def vars_of(cost: object) -> dict[str, int]:
    return {name: getattr(cost, name) for name in ("parameters", "paper_macs", "operations")}


def commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
