"""The trained networks that ship with the package."""

from pathlib import Path

import pytest
import torch

import ginio
from ginio.core import Symmetry
from ginio.evaluation.verification import random_windows
from ginio.geometry import so3
from ginio.metrics.equivariance import law_errors
from ginio.runtime import zoo
from ginio.runtime.checkpoint import WEIGHTS_FILE, Run

NAMES = zoo.shipped()
MEGABYTE = 2**20
each_network = pytest.mark.parametrize("name", NAMES)


def test_the_networks_a_user_would_pick_are_here() -> None:
    families = {name.rsplit("-", 1)[0] for name in NAMES}
    assert {"ginio-rs-nanobench", "ginio-rs-synthetic", "resnet1d-nanobench"} <= {*NAMES, *families}


def test_they_fit_into_the_repository() -> None:
    root = Path(ginio.__file__).parent / "weights"
    assert sum(p.stat().st_size for p in root.rglob(WEIGHTS_FILE)) <= 25 * MEGABYTE


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'ginio-x'.*ginio-rs-nanobench"):
        ginio.load("ginio-x")


@each_network
def test_its_card_says_where_it_came_from(name: str) -> None:
    known = ginio.load(name).card.provenance
    assert known["licence"] == "Apache-2.0"
    assert known["data_licence"]
    assert len(known["split_sha256"]) == 64 or known["split_sha256"].startswith("seeds-")
    assert 0 < known["validation"]["velocity_rmse"] < 1
    assert known["steps"] == known["config"]["steps"]
    assert not known["commit"].endswith("-dirty")


@each_network
def test_it_answers_its_windows_and_keeps_what_it_declares(name: str) -> None:
    run: Run = ginio.load(name)
    config = run.card.network
    generator = torch.Generator().manual_seed(0)
    x = random_windows(8, config.channels, config.window, generator).float()
    with torch.no_grad():
        errors = law_errors(run.network, x, so3.random(8, generator=generator))
    keeps_mean = float(errors.mean_relative.median()) < 1e-4
    keeps_covariance = float(errors.covariance_relative.median()) < 1e-4
    assert keeps_mean is (config.mean_symmetry is Symmetry.SO3)
    assert keeps_covariance is (config.covariance_symmetry is Symmetry.SO3)
