import pytest
import torch

from ginio.core import Quantity, Representation, Window, represent
from ginio.geometry import so3
from ginio.presets import NETWORKS
from ginio.runtime.checkpoint import Card, Run
from ginio.runtime.frontend import NeuralFrontend


@pytest.fixture
def frontend() -> NeuralFrontend:
    return NeuralFrontend(
        network=NETWORKS["ginio-rs"].build().double().eval(),
        window=200,
        representation=Representation.BODY,
        quantity=Quantity.VELOCITY,
    )


def body_window(length: int = 200, frame: Representation = Representation.BODY) -> Window:
    acc_s, gyr_s = torch.randn(2, 4, length, 3, dtype=torch.float64)
    R_ws = so3.random(4 * length, dtype=torch.float64).reshape(4, length, 3, 3)
    return represent(acc_s, gyr_s, R_ws, frame)


def test_interface_law(frontend: NeuralFrontend) -> None:
    window, R_ms = body_window(), so3.random(4, dtype=torch.float64)
    turned = frontend.measure(window.rotated(R_ms))
    expected = frontend.measure(window).rotated(R_ms)
    assert turned.quantity is Quantity.VELOCITY
    assert torch.allclose(turned.mean, expected.mean, rtol=1e-11)
    assert torch.allclose(turned.covariance.matrix(), expected.covariance.matrix(), rtol=1e-11)


def test_another_representation_is_refused(frontend: NeuralFrontend) -> None:
    with pytest.raises(ValueError, match=r"trained on windows in the 'body'.*found 'world'"):
        frontend.measure(body_window(frame=Representation.WORLD))


def test_another_length_is_refused(frontend: NeuralFrontend) -> None:
    with pytest.raises(ValueError, match="windows of 200 samples; found 208"):
        frontend.measure(body_window(208))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_refused_and_named(
    frontend: NeuralFrontend, value: float
) -> None:
    window = body_window()
    window.gyr_f[2, 57, 1] = value
    with pytest.raises(ValueError, match=rf"window 2, sample 57: acc .* gyr .*{value}"):
        frontend.measure(window)


def test_no_gradient_is_kept(frontend: NeuralFrontend) -> None:
    assert not frontend.measure(body_window()).mean.requires_grad


def test_a_covariance_is_widened_by_its_factor_and_the_mean_is_left() -> None:
    config = NETWORKS["ginio-rs"]
    torch.manual_seed(0)
    network = config.build().eval()
    window = Window(
        torch.randn(3, 200, 3), torch.randn(3, 200, 3), so3.random(3), Representation.LAST
    )
    plain, wide = (
        Run(
            Card(network=config, representation=Representation.LAST, covariance_factor=factor),
            network,
        )
        .frontend()
        .measure(window)
        for factor in (1.0, 4.0)
    )
    assert torch.equal(plain.mean, wide.mean)
    torch.testing.assert_close(wide.covariance.matrix(), 4 * plain.covariance.matrix())
