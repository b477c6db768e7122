"""The loop of filter and network: what the network is given, and what becomes of its answers."""

from dataclasses import dataclass, field, replace

import pytest
import torch

from ginio.core import Covariance, Measurement, Quantity, Representation, Window
from ginio.core.recording import Recording
from ginio.data import synthetic
from ginio.data.corpus import Corpus, decimate
from ginio.data.sensor_errors import SensorErrors
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed
from ginio.data.windows import AttitudeSource, WindowSet
from ginio.evaluation.fusion import FRAMES, FilterName
from ginio.filters.inekf import InekfConfig
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.start import start_at_truth
from ginio.geometry import so3
from ginio.runtime.connected import ConnectedLoop, Correction, Stream

FACTOR, WINDOW, EVERY, FIRST = 4, 40, 5, 30
FILTERS = {"inekf": InekfConfig, "scekf": ScekfConfig}
each_filter = pytest.mark.parametrize("name", sorted(FILTERS))


@pytest.fixture(scope="module")
def flight() -> Recording:
    config = QuadrotorConfig(
        shapes=(Shape.LISSAJOUS,), speeds=(Speed.MEDIUM,), errors=SensorErrors.none()
    )
    return synthetic.fly_one(config, 0, seed=6)


@dataclass
class Oracle:
    """Answers with the truth, in the order it is asked; keeps what it was given."""

    truth_l: list[torch.Tensor]
    std: float
    quantity: Quantity
    windows: list[Window] = field(default_factory=list)

    def measure(self, window: Window) -> Measurement:
        self.windows.append(window)
        mean = self.truth_l[len(self.windows) - 1]
        log_std = torch.full_like(mean, self.std).log()
        return Measurement(mean, Covariance(so3.identity_like(mean), log_std), self.quantity)


def run(
    flight: Recording,
    name: FilterName,
    R_ms: torch.Tensor,
    *,
    quantity: Quantity = Quantity.VELOCITY,
    error_s: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> tuple[list[Correction], Oracle]:
    """A flight with truth for a network, whose answers may be off by a constant."""
    truth, middle = flight.truth, FACTOR // 2
    count = len(flight.imu) // FACTOR
    due = [s for s in range(FIRST + 1, count) if (s - FIRST) % EVERY == 0]
    rows = torch.tensor(due) * FACTOR + middle
    moved_w = truth.v_w[rows].double()
    if quantity is Quantity.DISPLACEMENT:
        begin = rows - (WINDOW - 1) * FACTOR
        moved_w = (truth.p_w[rows] - truth.p_w[begin.clamp(min=0)]).double()
    R_ws = truth.R_ws.double()
    felt_s = so3.rotate(R_ws[rows].mT, moved_w) + torch.tensor(error_s).double()
    answers = [so3.rotate(R_ms.double(), v.expand(len(R_ms), 3)) for v in felt_s]
    oracle = Oracle(answers, 1e-3, quantity)
    clones = 40 if quantity is Quantity.DISPLACEMENT else 0
    loop = ConnectedLoop(
        frontend=oracle,
        filter=FILTERS[name](clones=clones).build(),
        representation=Representation.LAST_BODY,
        quantity=quantity,
        window=WINDOW,
        factor=FACTOR,
        every=EVERY,
        frame=FRAMES[name],
    )
    R_sm = R_ms.double().mT
    imu = flight.imu
    stream = Stream(imu.t, imu.acc_s.double() @ R_sm, imu.gyr_s.double() @ R_sm)
    here = FIRST * FACTOR + middle
    start = start_at_truth(
        R_ws[here] @ R_sm,
        truth.v_w[here].double().expand(len(R_ms), 3),
        truth.p_w[here].double().expand(len(R_ms), 3),
    )
    return list(loop.run(stream, start, FIRST)), oracle


def paths(corrections: list[Correction]) -> torch.Tensor:
    return torch.stack([c.moment.belief.state.p_w for c in corrections], dim=1)


def true_path(flight: Recording, corrections: list[Correction]) -> torch.Tensor:
    rows = torch.tensor([c.moment.sample for c in corrections]) * FACTOR + FACTOR // 2
    return flight.truth.p_w[rows].double()


@each_filter
def test_a_true_network_keeps_the_filter_on_the_path(flight: Recording, name: FilterName) -> None:
    corrections, _ = run(flight, name, torch.eye(3).unsqueeze(0))
    error = (paths(corrections)[0] - true_path(flight, corrections)).norm(dim=-1)
    assert len(corrections) > 100
    assert float(error.max()) < 0.05


@each_filter
def test_a_network_that_is_off_is_not_followed_unnoticed(
    flight: Recording, name: FilterName
) -> None:
    corrections, _ = run(flight, name, torch.eye(3).unsqueeze(0), error_s=(0.5, 0.0, 0.0))
    honest, _ = run(flight, name, torch.eye(3).unsqueeze(0))

    def surprise(found: list[Correction]) -> float:
        return float(torch.stack([c.innovation.nis for c in found]).nanmean())

    assert surprise(corrections) > 10 * surprise(honest)


@each_filter
def test_a_remounted_stream_gives_the_same_path(flight: Recording, name: FilterName) -> None:
    quarter = torch.tensor([[0.0, torch.pi / 2, 0.0], [0.0, -torch.pi / 2, 0.0]])
    generator = torch.Generator().manual_seed(0)
    R_ms = torch.cat([torch.eye(3)[None], so3.exp(quarter), so3.random(97, generator=generator)])
    corrections, _ = run(flight, name, R_ms)
    found = paths(corrections)
    assert float((found[1:] - found[:1]).norm(dim=-1).max()) < 1e-4


def test_windows_are_those_of_training(flight: Recording) -> None:
    """Samples, padding and counted attitudes, to what the filter's biases add."""
    corrections, oracle = run(flight, "inekf", torch.eye(3).unsqueeze(0))
    corpus = Corpus.join(decimate([flight], FACTOR))
    windows = WindowSet(corpus, WINDOW, Quantity.VELOCITY, AttitudeSource.GYRO_WITHIN)
    last = torch.tensor([c.moment.sample for c in corrections])
    expected = windows.windows(last).represent(Representation.LAST_BODY).features()
    found = torch.cat([w.features() for w in oracle.windows])
    assert found.shape == expected.shape
    biases = torch.stack([c.moment.belief.state.bias_acc_s[0] for c in corrections]).norm(dim=-1)
    assert float((found - expected).abs().max()) < 2 * float(biases.max()) + 0.02
    assert float((found[0] - expected[0]).abs().max()) < 1e-3


@each_filter
def test_a_displacement_spans_its_window_to_the_sample(flight: Recording, name: FilterName) -> None:
    corrections, _ = run(flight, name, torch.eye(3).unsqueeze(0), quantity=Quantity.DISPLACEMENT)
    usable = torch.stack([c.innovation.usable[0] for c in corrections])
    first_whole = next(
        i for i, c in enumerate(corrections) if c.moment.sample - WINDOW + 1 >= FIRST
    )
    assert not bool(usable[:first_whole].any())
    assert bool(usable[first_whole + 1 :].all())
    error = (paths(corrections)[0] - true_path(flight, corrections)).norm(dim=-1)
    assert float(error.max()) < 0.1


def test_too_few_clones_for_displacements_are_refused() -> None:
    oracle = Oracle([], 1.0, Quantity.DISPLACEMENT)
    with pytest.raises(ValueError, match=r"need a filter of 20 clones; found 3"):
        ConnectedLoop(
            frontend=oracle,
            filter=InekfConfig(clones=3).build(),
            representation=Representation.LAST,
            quantity=Quantity.DISPLACEMENT,
            window=WINDOW,
            factor=FACTOR,
            every=EVERY,
            frame=Frame.LAST,
        )


def test_a_stream_is_sampled_as_recordings_are(flight: Recording) -> None:
    (expected,) = decimate([replace(flight, onboard_R_ws=None)], FACTOR)
    imu = flight.imu
    found = Stream(imu.t, imu.acc_s[None].double(), imu.gyr_s[None].double()).sampled(FACTOR)
    assert torch.equal(found.t, expected.imu.t)
    assert float((found.acc_s[0] - expected.imu.acc_s).abs().max()) < 1e-5
