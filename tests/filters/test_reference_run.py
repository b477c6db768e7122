"""The public run of TLIO's filter, repeated: with its settings, and with ours.

The run was recorded with numba code of the same equations. It starts at the truth, and its
displacements are white and of a known size. TLIO takes ten times their covariance.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from flights import Flight, measure
from runs import Schedule, run
from torch import Tensor

from ginio.core.measurement import Measurement
from ginio.filters.cloning import FilterConfig
from ginio.filters.inekf import InekfConfig
from ginio.filters.network_error import NetworkError
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.start import StartStd, start_at_truth
from ginio.filters.strapdown import ImuNoise

FILE = (
    Path(__file__).parents[3] / "shared" / "data" / "tlio_scekf_reference" / "scekf_90s_200hz.npz"
)
DT, EVERY = 0.005, 10
NOISE_M = 0.02
GRAVITY_W = (0.0, 0.0, -9.81)

# TLIO gives standard deviations of single samples at this rate, and of what it starts with.
TLIO_NOISE = ImuNoise(acc=(1e-3 * DT) ** 0.5, gyr=(1e-4 * DT) ** 0.5, acc_walk=1e-4, gyr_walk=1e-6)
TLIO_START = StartStd(
    tilt=np.radians(1.0),
    heading=np.radians(0.1),
    velocity=1.0,
    position=1e-3,
    bias_acc=0.02,
    bias_gyr=1e-4,
)


@cache
def recorded() -> dict[str, Tensor]:
    if not FILE.exists():
        pytest.skip("the reference run of TLIO's filter is not beside the repository")
    with np.load(FILE, allow_pickle=False) as file:
        return {k: torch.from_numpy(file[k]) for k in file.files if file[k].dtype.kind in "fi"}


@torch.inference_mode()
def repeated(config: FilterConfig, std: StartStd) -> tuple[float, float, float]:
    """Root mean square and final error of position in metres, and mean NIS."""
    data = recorded()
    flight = Flight(
        torch.full((len(data["sim_t_us"]) - 1,), DT, dtype=torch.float64),
        data["sim_acc"][None, :-1],
        data["sim_gyr"][None, :-1],
        data["sim_R"][None],
        data["sim_v"][None],
        data["sim_p"][None],
    )
    filter_ = config.build()
    start = start_at_truth(flight.R_ws[:, 0], flight.v_w[:, 0], flight.p_w[:, 0], std)
    errors, nis = [], []

    def network(k: int, mean: Tensor) -> Measurement:
        return measure(mean + data["meas_noise"][k], NOISE_M)

    def after(k: int, belief, innovation) -> None:
        errors.append((belief.state.p_w - flight.p_w[:, k]).norm())
        if innovation is not None:
            nis.append(innovation.nis)

    schedule = Schedule(every=EVERY, span=20, frame=Frame.HEADING)
    run(filter_, filter_.start(start), flight, schedule, network, after=after)
    e = torch.stack(errors)
    return float(e.square().mean().sqrt()), float(e[-1]), float(torch.stack(nis).mean())


def test_with_its_settings_it_errs_as_it_did() -> None:
    config = ScekfConfig(
        noise=TLIO_NOISE,
        network=NetworkError(factor=10.0),
        adaptation=None,
        gate_probability=1.0,
        gravity_w=GRAVITY_W,
    )
    rmse, _, nis = repeated(config, TLIO_START)
    assert rmse == pytest.approx(0.148, rel=0.05)
    assert nis == pytest.approx(0.35, abs=0.02)


@pytest.mark.parametrize("config", [ScekfConfig, InekfConfig])
def test_with_ours_it_is_four_times_better_and_honest(config: type) -> None:
    rmse, _, nis = repeated(config(gravity_w=GRAVITY_W), StartStd())
    assert rmse <= 0.04
    assert 2.7 <= nis <= 3.3
