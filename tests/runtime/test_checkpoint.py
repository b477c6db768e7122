import json
from pathlib import Path

import pytest
import torch

from ginio.models import AnyConfig
from ginio.presets import NETWORKS
from ginio.runtime.checkpoint import CheckpointError, load_run, save_run


@pytest.fixture(params=["ginio-rs", "ginio-rd-paper", "resnet1d"])
def config(request: pytest.FixtureRequest) -> AnyConfig:
    return NETWORKS[request.param]


@pytest.fixture
def run(tmp_path: Path, config: AnyConfig) -> Path:
    save_run(tmp_path / "run", config, config.build())
    return tmp_path / "run"


def test_a_run_reads_back_as_it_was_written(tmp_path: Path, config: AnyConfig) -> None:
    network = config.build().eval()
    save_run(tmp_path, config, network)
    config_read, network_read = load_run(tmp_path)
    x = torch.randn(2, 2, 3, 200)
    assert config_read == config
    assert all(torch.equal(a, b) for a, b in zip(network(x), network_read(x), strict=True))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "weights.safetensors"]


def edit(run: Path, **changes: object) -> None:
    path = run / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_unknown_key_is_refused(run: Path) -> None:
    edit(run, breadth=100)
    with pytest.raises(CheckpointError, match=r"config\.json: .*breadth"):
        load_run(run)


def test_unknown_type_is_refused(run: Path) -> None:
    edit(run, type="os.system")
    with pytest.raises(CheckpointError, match=r"type must be one of .*found 'os\.system'"):
        load_run(run)


def test_a_config_that_does_not_fit_the_weights_is_refused(run: Path) -> None:
    edit(run, groups=[[8, 1]])
    with pytest.raises(CheckpointError, match=r"weights\.safetensors: weights do not fit"):
        load_run(run)


@pytest.mark.bare
def test_values_out_of_range_are_refused(run: Path) -> None:
    edit(run, window=0)
    with pytest.raises(CheckpointError, match="window must be at least 1 sample; found 0"):
        load_run(run)


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
def test_a_missing_file_is_named(run: Path, name: str) -> None:
    (run / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}: no such file"):
        load_run(run)


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"[1, 2]"])
@pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
def test_a_damaged_file_is_named(run: Path, name: str, content: bytes) -> None:
    (run / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=name):
        load_run(run)
