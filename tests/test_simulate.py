"""`ginio simulate`, and what the rest of the package makes of its files."""

from pathlib import Path

import pytest
import torch

from ginio import cli
from ginio.data.readers import nanobench
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed, fly

BRIEF = ["--duration-s", "15"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_simulated_flights_are_checked_and_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a" / "flights"
    kinds = ["--shapes", "star", "ramp", "--speeds", "fast"]
    assert cli.run(["simulate", str(out), "--flights", "3", "--seed", "5", *kinds, *BRIEF]) == 0
    assert f"wrote 3 flights, 0.8 minutes, to {out}" in capsys.readouterr().out
    assert cli.run(["data", "check", str(out)]) == 0
    assert "3 usable flights" in capsys.readouterr().out
    config = QuadrotorConfig(shapes=(Shape.STAR, Shape.RAMP), speeds=(Speed.FAST,), duration_s=15.0)
    flights = fly(config, 3, seed=5)
    assert set(nanobench.list_sequences(out)) == {f"{flight.name}_rep1" for flight in flights}
    for flight in flights:
        back = nanobench.read(out, f"{flight.name}_rep1")
        rows = len(back.imu)
        assert rows > 1490
        torch.testing.assert_close(back.imu.acc_s, flight.imu.acc_s[:rows], rtol=0, atol=1e-5)
        torch.testing.assert_close(back.truth.p_w, flight.truth.p_w[:rows], rtol=0, atol=1e-5)


def test_a_seed_decides_every_byte(tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        command = ["simulate", str(tmp_path / name), "--flights", "2", "--seed", seed]
        assert cli.run([*command, *BRIEF]) == 0
    first, again, other = (contents(tmp_path / name) for name in "abc")
    assert len(first) == 4
    assert first == again
    assert first.keys() == other.keys()
    assert all(first[name] != other[name] for name in first if name.endswith(".csv.gz"))


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", str(tmp_path), "--flights", "1", *BRIEF]
    assert cli.run(command) == 0
    before = contents(tmp_path)
    assert cli.run([*command, "--seed", "9"]) == 2
    message = capsys.readouterr().err
    assert "holds 1 flights already, such as circle_slow_0000_rep1.csv.gz" in message
    assert message.count("\n") == 1
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--flights", "0"], "--flights must be 1 or more; found 0"),
        (["--seed", "-1"], "--seed must not be negative; found -1"),
    ],
)
def test_what_cannot_be_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert cli.run(["simulate", str(tmp_path / "out"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_flight_too_short_to_fly_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.run(["simulate", str(tmp_path / "out"), "--duration-s", "3"])
    assert stop.value.code == 2
    assert "duration_s must be 15.0" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_flight_does_not_depend_on_how_many_there_are(tmp_path: Path) -> None:
    for count in ("1", "2"):
        assert cli.run(["simulate", str(tmp_path / count), "--flights", count, *BRIEF]) == 0
    few, many = contents(tmp_path / "1"), contents(tmp_path / "2")
    assert few.items() <= many.items()
