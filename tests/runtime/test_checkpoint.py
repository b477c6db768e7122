import json
from pathlib import Path

import pytest
import torch

from ginio.core import Quantity, Representation
from ginio.models import AnyConfig
from ginio.presets import NETWORKS
from ginio.runtime.checkpoint import Card, CheckpointError, load_run, save_run


@pytest.fixture(params=["ginio-rs", "ginio-rd-paper", "resnet1d"])
def config(request: pytest.FixtureRequest) -> AnyConfig:
    return NETWORKS[request.param]


@pytest.fixture
def run(tmp_path: Path, config: AnyConfig) -> Path:
    save_run(tmp_path / "run", Card(network=config), config.build())
    return tmp_path / "run"


def test_a_run_reads_back_as_it_was_written(tmp_path: Path, config: AnyConfig) -> None:
    network = config.build().eval()
    card = Card(
        network=config,
        representation=Representation.LAST,
        quantity=Quantity.DISPLACEMENT,
        rate_hz=25.0,
        provenance={"data": "none", "seed": 3},
    )
    save_run(tmp_path, card, network)
    run = load_run(tmp_path)
    x = torch.randn(2, 2, 3, 200)
    assert run.card == card
    assert all(torch.equal(a, b) for a, b in zip(network(x), run.network(x), strict=True))
    assert not run.network.training
    assert run.frontend().window == config.window
    assert sorted(p.name for p in tmp_path.iterdir()) == ["card.json", "weights.safetensors"]


def edit(run: Path, **changes: object) -> None:
    path = run / "card.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_network(run: Path, **changes: object) -> None:
    edit(run, network={**json.loads((run / "card.json").read_text())["network"], **changes})


def test_unknown_key_is_refused(run: Path) -> None:
    edit_network(run, breadth=100)
    with pytest.raises(CheckpointError, match=r"card\.json: .*breadth"):
        load_run(run)


def test_unknown_key_of_the_card_is_refused(run: Path) -> None:
    edit(run, colour="red")
    with pytest.raises(CheckpointError, match=r"expected the keys .*network.*found .*colour"):
        load_run(run)


def test_unknown_type_is_refused(run: Path) -> None:
    edit_network(run, type="os.system")
    with pytest.raises(CheckpointError, match=r"type must be one of .*found 'os\.system'"):
        load_run(run)


def test_unknown_representation_is_refused(run: Path) -> None:
    edit(run, representation="moon")
    with pytest.raises(
        CheckpointError, match=r"one of body, world, last, gravity, .*; found 'moon'"
    ):
        load_run(run)


def test_a_config_that_does_not_fit_the_weights_is_refused(run: Path) -> None:
    edit_network(run, groups=[[8, 1]])
    with pytest.raises(CheckpointError, match=r"weights\.safetensors: weights do not fit"):
        load_run(run)


@pytest.mark.bare
def test_values_out_of_range_are_refused(run: Path) -> None:
    edit_network(run, window=0)
    with pytest.raises(CheckpointError, match="window must be at least 1 sample; found 0"):
        load_run(run)


@pytest.mark.parametrize("name", ["card.json", "weights.safetensors"])
def test_a_missing_file_is_named(run: Path, name: str) -> None:
    (run / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}: no such file"):
        load_run(run)


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"[1, 2]"])
@pytest.mark.parametrize("name", ["card.json", "weights.safetensors"])
def test_a_damaged_file_is_named(run: Path, name: str, content: bytes) -> None:
    (run / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=name):
        load_run(run)


@pytest.mark.bare
@pytest.mark.parametrize("name", ["rate_hz", "covariance_factor"])
@pytest.mark.parametrize("value", [0, -1.0, float("inf"), "2", None])
def test_a_figure_that_must_be_positive_is_refused(run: Path, name: str, value: object) -> None:
    edit(run, **{name: value})
    with pytest.raises(CheckpointError, match=rf"card\.json: {name} must be a positive number"):
        load_run(run)
