"""Each layer commutes with rotations, in training and in use, and does something."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ginio.geometry import so3
from ginio.nn import algebra
from ginio.nn.heads import DiagonalCovariance, SpectralCovariance, VectorHead
from ginio.nn.linear import VectorConv, VectorLinear
from ginio.nn.nonlinear import DirectionalReLU, NormGate, VectorBracket
from ginio.nn.norm import (
    VectorBatchNorm,
    VectorBatchScaleNorm,
    VectorDepartures,
    VectorDropout,
    VectorLayerScaleNorm,
    VectorMeanPool,
)
from ginio.nn.recurrent import VectorGRU, VectorGRUCell

CHANNELS, TIME = 6, 13
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: VectorLinear(CHANNELS, 5),
    "conv": lambda: VectorConv(CHANNELS, 5, 3, stride=2),
    "norm gate": lambda: NormGate(CHANNELS),
    "directional relu": lambda: DirectionalReLU(CHANNELS),
    "leaky directional relu": lambda: DirectionalReLU(CHANNELS, leak=0.1),
    "bracket": lambda: VectorBracket(CHANNELS),
    "batch scale norm": lambda: VectorBatchScaleNorm(CHANNELS),
    "layer scale norm": lambda: VectorLayerScaleNorm(CHANNELS),
    "batch norm": lambda: VectorBatchNorm(CHANNELS),
    "mean pool": lambda: VectorMeanPool(2),
    "departures": VectorDepartures,
    "head": lambda: VectorHead(CHANNELS, TIME, 3, narrow=4, hidden=8, norm="scale"),
}
LINEAR = {"linear", "conv", "mean pool", "departures"}


def randomised(layer: nn.Module) -> nn.Module:
    """Weights, gains and running statistics that are not as they were initialised."""
    for parameter in layer.parameters():
        nn.init.normal_(parameter, mean=0.3)
    for name, buffer in layer.named_buffers():
        if name.endswith(("mean_square", "running_var")):
            nn.init.uniform_(buffer, 0.5, 2)
    return layer.double()


@pytest.fixture(params=LAYERS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def layer(name: str) -> nn.Module:
    return randomised(LAYERS[name]())


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(10, CHANNELS, 3, TIME, dtype=torch.float64)


def rotations(count: int) -> torch.Tensor:
    return so3.random(count, dtype=torch.float64).unsqueeze(1)


def turned(R: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Rotates features ``b c 3 t`` or vectors ``b c 3``."""
    return R @ y if y.ndim == 4 else (R @ y.unsqueeze(-1)).squeeze(-1)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_layer_law_over_a_thousand_rotations(
    name: str, mode: str, layer: nn.Module, x: torch.Tensor
) -> None:
    layer.train(mode == "train")
    # Batch normalisation of lengths blows short vectors up; its law is there, with fewer digits.
    bound = 1e-10 if name == "batch norm" else 1e-13
    worst = 0.0
    with torch.no_grad():
        for _ in range(100):
            y = layer(x)
            R = rotations(len(x))
            difference = layer(R @ x) - turned(R, y)
            scale = y.flatten(1).norm(dim=1)
            worst = max(worst, float((difference.flatten(1).norm(dim=1) / scale).max()))
    assert worst <= bound


def test_layer_is_as_linear_as_it_says(name: str, layer: nn.Module, x: torch.Tensor) -> None:
    layer.eval()
    y = torch.randn_like(x)
    with torch.no_grad():
        gap = (layer(x + y) - layer(x) - layer(y)).norm() / layer(x).norm()
    if name in LINEAR or name == "batch scale norm":
        assert gap <= 1e-13
    else:
        assert gap >= 1e-3


def test_every_parameter_receives_a_gradient(layer: nn.Module, x: torch.Tensor) -> None:
    layer(x.requires_grad_()).square().sum().backward()
    dead = [n for n, p in layer.named_parameters() if p.grad is None or not p.grad.any()]
    assert dead == []


def test_gradients_are_finite_at_zero(layer: nn.Module) -> None:
    zero = torch.zeros(4, CHANNELS, 3, TIME, dtype=torch.float64, requires_grad=True)
    layer(zero).sum().backward()
    assert bool(torch.isfinite(zero.grad).all())
    assert all(bool(torch.isfinite(p.grad).all()) for p in layer.parameters())


@pytest.mark.parametrize("name", ["directional relu", "bracket", "head", "layer scale norm"])
def test_gradients_are_right(name: str) -> None:
    layer = randomised(LAYERS[name]()).eval()
    small = torch.randn(2, CHANNELS, 3, TIME, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (small,), fast_mode=True)


def test_a_learned_matrix_on_the_geometric_axis_fails_the_law(x: torch.Tensor) -> None:
    """Negative control: what rule 4 of the house forbids is seen by the test above."""
    matrix = torch.randn(3, 3, dtype=torch.float64)
    R = rotations(len(x))
    difference = matrix @ (R @ x) - R @ (matrix @ x)
    assert difference.norm() >= 0.1 * x.norm()


def test_algebra_against_torch(x: torch.Tensor) -> None:
    y = torch.randn_like(x)
    assert torch.allclose(algebra.dot(x, y), (x * y).sum(-2))
    assert torch.allclose(algebra.norm(x), x.norm(dim=-2))
    assert torch.allclose(algebra.cross(x, y), torch.linalg.cross(x, y, dim=-2))


def test_conv_is_a_convolution_of_each_component(x: torch.Tensor) -> None:
    conv = randomised(VectorConv(CHANNELS, 5, 3, stride=2))
    for axis in range(3):
        expected = nn.functional.conv1d(x[:, :, axis], conv.weight, stride=2, padding=1)
        assert torch.allclose(conv(x)[:, :, axis], expected)


def test_vector_weights_are_a_ninth_of_coordinate_weights() -> None:
    vector = VectorConv(8, 16, 3).weight.numel()
    coordinates = nn.Conv1d(3 * 8, 3 * 16, 3, bias=False).weight.numel()
    assert (vector, coordinates) == (3 * 8 * 16, 9 * vector)


@pytest.mark.parametrize("leak", [0.0, 0.1])
def test_directional_relu_against_its_definition(leak: float, x: torch.Tensor) -> None:
    layer = randomised(DirectionalReLU(CHANNELS, leak=leak))
    q = layer.direction(x)
    unit = q / q.norm(dim=-2, keepdim=True)
    along = (x * unit).sum(-2, keepdim=True)
    expected = torch.where(along >= 0, x, x - (1 - leak) * along * unit)
    assert torch.allclose(layer(x), expected)
    assert float(((layer(x) * unit).sum(-2) < -1e-12).double().mean()) == pytest.approx(
        float((along < 0).double().mean()) if leak else 0.0
    )


@pytest.mark.parametrize("norm", [VectorBatchScaleNorm, VectorLayerScaleNorm])
def test_scale_norms_keep_directions_and_give_unit_size(
    norm: type[nn.Module], x: torch.Tensor
) -> None:
    layer = norm(CHANNELS).double()
    y = layer(5 * x)
    cosine = algebra.dot(x, y) / (algebra.norm(x) * algebra.norm(y))
    assert torch.allclose(cosine, torch.ones_like(cosine))
    assert float(algebra.squared_norm(y).mean().detach()) == pytest.approx(1, rel=1e-4)


def test_batch_norm_of_lengths_flips_vectors_while_training(x: torch.Tensor) -> None:
    """Why it is not the default: about half of the normalised lengths are negative."""
    flipped = algebra.dot(x, VectorBatchNorm(CHANNELS).double()(x)) < 0
    assert 0.4 <= float(flipped.double().mean()) <= 0.6


def test_batch_scale_norm_uses_running_statistics(x: torch.Tensor) -> None:
    layer = VectorBatchScaleNorm(CHANNELS).double()
    for _ in range(200):
        trained = layer(3 * x)
    assert torch.allclose(layer.eval()(3 * x), trained, rtol=1e-6)


def test_mean_pool_averages_a_short_last_group_over_its_own(x: torch.Tensor) -> None:
    y = VectorMeanPool(2)(x)
    assert y.shape[-1] == 7
    assert torch.allclose(y[..., 0], x[..., :2].mean(-1))
    assert torch.allclose(y[..., -1], x[..., -1])


def test_departures_stand_beside_their_channels_and_see_no_constant() -> None:
    x = torch.randn(4, 5, 3, 20, dtype=torch.float64)
    y = VectorDepartures()(x)
    assert torch.equal(y[:, :5], x)
    assert y[:, 5:].mean(-1).abs().max() < 1e-15
    shifted = VectorDepartures()(x + torch.randn(4, 5, 3, 1, dtype=torch.float64))
    assert (shifted[:, 5:] - y[:, 5:]).abs().max() < 1e-14


def test_dropout_drops_whole_channels_and_keeps_the_mean() -> None:
    x = torch.ones(2000, CHANNELS, 3, TIME)
    layer = VectorDropout(0.25)
    y = layer(x)
    per_channel = y.flatten(2)
    assert bool((per_channel == per_channel[..., :1]).all())
    assert float(y.mean()) == pytest.approx(1, abs=0.02)
    assert torch.equal(layer.eval()(x), x)


@pytest.mark.parametrize("corrected", [False, True])
def test_spectral_covariance_law_and_invariance(corrected: bool) -> None:
    head = randomised(SpectralCovariance(determinant_correction=corrected))
    vectors = torch.randn(1000, 3, 3, dtype=torch.float64)
    R = so3.random(1000, dtype=torch.float64)
    with torch.no_grad():
        axes, log_std = head(vectors)
        axes_m, log_std_m = head((R @ vectors.mT).mT)
    s = torch.linalg.svdvals(vectors)
    mirrored = corrected & (torch.linalg.det(vectors) < 0)
    condition = s[:, 0] / (s[:, 1] + torch.where(mirrored, -s[:, 2], s[:, 2]))
    error = (axes_m - R @ axes).flatten(1).norm(dim=1)
    assert float((error / condition).max()) <= 1e-13
    assert float(((log_std_m - log_std).norm(dim=1) / log_std.norm(dim=1)).max()) <= 1e-12
    assert torch.allclose(head.penalty(vectors), head.penalty((R @ vectors.mT).mT))


def test_spectral_covariance_penalty_vanishes_for_orthonormal_vectors() -> None:
    head = SpectralCovariance(determinant_correction=False).double()
    assert float(head.penalty(so3.random(5, dtype=torch.float64)).max()) <= 1e-25
    assert float(head.penalty(torch.ones(1, 3, 3, dtype=torch.float64))) > 1


def degenerate_vectors(count: int) -> torch.Tensor:
    """Generic, orthonormal, with equal singular values, nearly and exactly rank deficient."""
    u, v = so3.random(count), so3.random(count)
    stretch = torch.rand(count, 3)
    kind = torch.arange(count) % 8
    stretch[kind == 1] = 1
    stretch[kind == 2, 1] = stretch[kind == 2, 0]
    stretch[kind == 3, 2] = stretch[kind == 3, 1]
    stretch[kind == 4, 2] = -stretch[kind == 4, 1]
    stretch[kind == 5, 2] = 1e-8
    stretch[kind == 6, 1:] = 0
    vectors = u @ torch.diag_embed(stretch) @ v.mT
    vectors[kind == 7] = u[kind == 7]
    special = (torch.eye(3), torch.zeros(3, 3), torch.ones(3, 3), -torch.eye(3))
    vectors[:4] = torch.stack(special)
    return vectors


@pytest.mark.parametrize("corrected", [False, True])
def test_spectral_covariance_gradients_are_finite_and_bounded_everywhere(corrected: bool) -> None:
    head = SpectralCovariance(determinant_correction=corrected)
    vectors = degenerate_vectors(100_000).requires_grad_()
    axes, log_std = head(vectors)
    loss = (axes * torch.randn_like(axes)).sum() + log_std.sum() + head.penalty(vectors).sum()
    loss.backward()
    assert int((~torch.isfinite(vectors.grad)).sum()) == 0
    assert float(vectors.grad.abs().max()) <= 1e5
    assert all(bool(torch.isfinite(p.grad).all()) for p in head.parameters())


def test_autograd_through_the_svd_would_not_be_finite() -> None:
    """Negative control: the same vectors through torch's own derivative of the SVD."""
    vectors = degenerate_vectors(1000).requires_grad_()
    u, _, vt = torch.linalg.svd(vectors)
    (u @ vt * torch.randn(1000, 3, 3)).sum().backward()
    broken = (~torch.isfinite(vectors.grad)).flatten(1).any(1)
    assert int(broken.sum()) >= 50


def test_diagonal_covariance_does_not_turn() -> None:
    axes, log_std = DiagonalCovariance()(torch.randn(4, 1, 3))
    assert torch.equal(axes, torch.eye(3).expand(4, 3, 3))
    assert log_std.shape == (4, 3)


def test_gru_cell_law_over_a_sequence() -> None:
    cell = randomised(VectorGRUCell(2, 7))
    inputs = torch.randn(20, 50, 3, 2, dtype=torch.float64)
    R = so3.random(50, dtype=torch.float64)
    state = torch.zeros(50, 3, 7, dtype=torch.float64)
    turned_state = state
    with torch.no_grad():
        for x in inputs:
            state = cell(x, state)
            turned_state = cell(R @ x, turned_state)
            expected = R @ state
            assert (turned_state - expected).norm() <= 1e-13 * expected.norm()


def test_gru_cell_against_its_definition() -> None:
    """Eq. 20 with the layers of the other layout, one input and state at a time."""
    cell = randomised(VectorGRUCell(2, 7))
    x, h = (torch.randn(5, n, 3, 1, dtype=torch.float64) for n in (2, 7))
    lengths = [m(v).norm(dim=2) for m, v in ((cell.input_lengths, x), (cell.state_lengths, h))]
    gates = torch.sigmoid(cell.gates(torch.cat(lengths, dim=1).squeeze(-1)))
    reset, update = gates[..., None, None].chunk(2, dim=1)
    candidate = cell.norm(cell.activation(cell.from_input(x) + cell.from_state(reset * h)))
    expected = (1 - update) * h + update * candidate
    found = cell(x.squeeze(-1).mT, h.squeeze(-1).mT)
    assert torch.allclose(found, expected.squeeze(-1).mT, rtol=1e-12)


def test_gru_cell_forgets_nothing_when_its_update_gate_is_shut() -> None:
    cell = VectorGRUCell(2, 7)
    with torch.no_grad():
        cell.gates.weight.zero_()
        cell.gates.bias[7:] = -100
    state = torch.randn(3, 3, 7)
    assert torch.allclose(cell(torch.randn(3, 3, 2), state), state)


def test_gru_runs_as_its_cells_step() -> None:
    layer = randomised(VectorGRU(2, 7, is_bidirectional=True))
    x = torch.randn(12, 4, 3, 2, dtype=torch.float64)
    past = future = torch.zeros(4, 3, 7, dtype=torch.float64)
    pasts, futures = [], []
    for t in range(12):
        past = layer.forwards(x[t], past)
        future = layer.backwards(x[11 - t], future)
        pasts.append(past)
        futures.insert(0, future)
    expected = torch.cat((torch.stack(pasts), torch.stack(futures)), dim=-1)
    assert torch.allclose(layer(x), expected, rtol=1e-12)


def test_gru_of_one_direction_goes_on_where_it_left_off() -> None:
    layer = randomised(VectorGRU(2, 7, is_bidirectional=False))
    x = torch.randn(12, 4, 3, 2, dtype=torch.float64)
    first = layer(x[:5])
    rest = layer(x[5:], first[-1])
    assert torch.allclose(layer(x), torch.cat((first, rest)), rtol=1e-12)


@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_every_weight_of_a_gru_is_used(is_bidirectional: bool) -> None:
    layer = VectorGRU(2, 7, is_bidirectional=is_bidirectional)
    layer(torch.randn(5, 4, 3, 2)).square().sum().backward()
    assert [n for n, p in layer.named_parameters() if p.grad is None or not p.grad.any()] == []
