"""The command line, run as a user runs it but in this process."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from ginio import cli
from ginio.cli import verify as verify_command
from ginio.presets import NETWORKS
from ginio.runtime.checkpoint import Card, save_run

QUICK = ["--windows", "4", "--rotations", "2", "--steps", "2"]


def test_verify_passes_what_obeys_and_writes_every_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "law.json"
    assert cli.run(["verify", "ginio-rs", "resnet1d", "--json", str(out), *QUICK]) == 0
    checks = json.loads(out.read_text())["checks"]
    assert len(checks) == 2 * 2 * 2 * 4
    ginio = [c for c in checks if c["network"] == "ginio-rs"]
    resnet = [c for c in checks if c["network"] == "resnet1d"]
    assert (
        {c["mean_verdict"] for c in ginio} == {c["covariance_verdict"] for c in ginio} == {"holds"}
    )
    assert {c["mean_verdict"] for c in resnet} == {"not declared"}
    uniform = [c for c in resnet if c["rotations"] == "uniform"]
    assert all(c["mean"]["relative_median"] > 0.1 for c in uniform)
    printed = capsys.readouterr().out
    assert "ginio-rs" in printed
    assert "resnet1d" in printed


def test_verify_reads_a_run_directory(tmp_path: Path) -> None:
    config = NETWORKS["ginio-rd"]
    save_run(tmp_path, Card(network=config), config.build())
    assert cli.run(["verify", str(tmp_path), *QUICK]) == 0


def test_verify_exits_1_when_a_declared_symmetry_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(name: str, *, seed: int) -> tuple[object, nn.Module]:
        config = NETWORKS[name]
        network = config.build()
        network.stem[0].register_forward_hook(lambda _module, _inputs, out: out + 1)
        return config, network

    monkeypatch.setattr(verify_command, "find_network", broken)
    assert cli.run(["verify", "ginio-rs", *QUICK]) == 1


def test_an_unknown_network_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["verify", "ginio-xl"]) == 2
    message = capsys.readouterr().err
    assert "'ginio-xl' is neither a network (ginio-rd, " in message
    assert "Traceback" not in message


def test_a_wrong_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.run(["verify", "--rotation", "3"])
    assert stop.value.code == 2
    assert "--rotations" in capsys.readouterr().err


def test_networks_lists_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["networks"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in NETWORKS)
    assert "5,424,646" in printed


def test_fresh_weights_follow_the_seed() -> None:
    _, first = verify_command.find_network("ginio-rs", seed=1)
    _, again = verify_command.find_network("ginio-rs", seed=1)
    _, other = verify_command.find_network("ginio-rs", seed=2)
    weights = [next(n.parameters()) for n in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
