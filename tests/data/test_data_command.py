"""`ginio data`, run as a user runs it but in this process."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import synthetic_nanobench as synthetic

from ginio import cli
from ginio.cli.console import CONSOLE
from ginio.core.recording import Recording
from ginio.data.readers import nanobench
from ginio.data.readers.nanobench import Flight

NAME = "B2_circle_slow_rep1"
GOOD = synthetic.csv(synthetic.table(700, tail=40))


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONSOLE, "width", 200)


def test_check_says_what_a_folder_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    synthetic.write(tmp_path / f"{NAME}.csv.gz", GOOD)
    synthetic.write(tmp_path / "B2_circle_slow_rep2.csv", GOOD)
    synthetic.write(tmp_path / "B7_oval_slow_rep1.csv", synthetic.csv(synthetic.table(211)))
    assert cli.run(["data", "check", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    whole, stub = (line for line in printed.splitlines() if "rep1" in line)
    assert NAME in whole
    assert "700" in whole
    assert "0.4 s" in whole
    assert "also published as B2_circle_slow_rep2" in whole
    assert "too short to use" in stub
    assert "1 usable flights, 0.1 minutes" in printed


def test_check_leaves_the_folder_as_it_is(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path / f"{NAME}.csv", GOOD)
    assert cli.run(["data", "check", str(tmp_path)]) == 0
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


WRONG = {
    "no flights": (None, "no flights; expected files like B2_circle_fast_rep1.csv[.gz]"),
    "empty": (b"", "empty file; expected a header with t, px, py, pz, ..."),
    "semicolons": (GOOD.replace(b",", b";"), "line 1: columns are separated by ';'; expected ','"),
    "tabs": (GOOD.replace(b",", b"\t"), "line 1: columns are separated by a tab; expected ','"),
    "a word": (
        GOOD.replace(b"36000.000000000", b"oops", 1).replace(b"1772426634.14", b"lost.14", 1),
        "line 2: column 't' is 'lost.140748739'; expected a number",
    ),
}


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG)
def test_check_names_the_file_and_what_was_expected(
    content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On one line, however long the path, brackets and all."""
    root = tmp_path / f"{'long ' * 20}[name] [/of a] [bold]folder"
    root.mkdir(parents=True)
    path = root if content is None else synthetic.write(root / f"{NAME}.csv", content)
    assert cli.run(["data", "check", str(root)]) == 2
    printed = capsys.readouterr()
    assert f"{path}" in printed.err
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert len(printed.err.splitlines()) == 1
    assert NAME not in printed.out


def test_check_prints_the_folder_as_it_is_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    synthetic.write(tmp_path / "[red]flights" / f"{NAME}.csv", GOOD)
    monkeypatch.chdir(tmp_path)
    assert cli.run(["data", "check", "[red]flights"]) == 0
    assert "[red]flights" in capsys.readouterr().out


def test_check_of_a_missing_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["data", "check", str(tmp_path / "gone")]) == 2
    assert f"{tmp_path / 'gone'}: no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["data"], ["data", "flights"], ["data", "cheque", "flights"]]
)
def test_data_without_check_points_to_it(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.run(arguments)
    assert stop.value.code == 2
    assert "check" in capsys.readouterr().err


def test_check_without_a_folder_asks_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.run(["data", "check"])
    assert stop.value.code == 2
    assert "PATH" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["data", "train", "evaluate"]),
        (["data", "check", "--help"], ["ginio data check", "PATH", "Folder"]),
    ],
)
def test_help_names_it(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.run(arguments)
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)


def test_check_of_the_real_flights(
    nanobench_flights: Mapping[str, tuple[Flight, Recording | None]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flights = [flight for flight, _ in nanobench_flights.values()]
    monkeypatch.setattr(nanobench, "inspect", lambda _root: flights)
    assert cli.run(["data", "check", "flights"]) == 0
    printed = capsys.readouterr().out
    assert "71 usable flights, 42.4 minutes" in printed
    assert all(flight.name in printed for flight in flights)
