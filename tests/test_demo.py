"""`ginio demo` with networks too small to be good; what they answer is tested elsewhere."""

import sys
from pathlib import Path

import pytest
from tiny_runs import TINY, TINY_RESNET, save

from ginio import cli
from ginio.data.export import write_nanobench
from ginio.data.readers import nanobench
from ginio.data.split import Split
from ginio.data.synthetic import QuadrotorConfig, Shape, Speed, fly

TRAINED = "circle_slow_0000_rep1"
KEPT = "star_slow_0001_rep1"


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options that choose two networks trained on NanoBench, as their cards say."""
    root = tmp_path_factory.mktemp("runs")
    card = {"data": "nanobench", "split": "standard", "config": {"augment": {"turn": "yaw"}}}
    ours = save(root / "ours", TINY, **card)
    theirs = save(root / "theirs", TINY_RESNET, **card)
    return ["--network", str(ours), "--baseline", str(theirs)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("flights")
    config = QuadrotorConfig(
        shapes=(Shape.CIRCLE, Shape.STAR), speeds=(Speed.SLOW,), duration_s=15.0
    )
    for flight in fly(config, 2, seed=0):
        write_nanobench(flight, root)
    return root


@pytest.fixture
def split_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That folder, with a split of it in place of the shipped one."""
    files = nanobench.files(folder)
    train, test = ({name: nanobench.content_sha256(files[name])} for name in (TRAINED, KEPT))
    made = Split("nanobench", "standard", train, {}, test)
    monkeypatch.setattr(Split, "load", lambda _dataset, _name: made)
    return folder


def words(printed: str) -> str:
    return " ".join(printed.split())


def test_a_simulated_flight_is_shown(
    tmp_path: Path, networks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pages" / "demo.html"
    assert cli.run(["demo", *networks, "--out", str(out)]) == 0
    printed = words(capsys.readouterr().out)
    assert "trefoil_medium_0000, simulated, seed 2026" in printed
    assert "not seen in training by any of these networks" in printed
    for part in ("as recorded", "gravity along x", "standing still", "Turning the sensor changes"):
        assert part in printed
    assert str(out) in printed
    page = out.read_text(encoding="utf-8")
    assert "trefoil_medium_0000" in page
    assert "windows turned at random: yaw" in page


def test_its_kind_may_be_chosen(
    tmp_path: Path, networks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["demo", *networks, "--out", str(tmp_path / "x.html")]
    assert cli.run([*command, "--flight", "star_fast"]) == 0
    assert "star_fast_0000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flight", "seen"),
    [(None, "not seen in training by any of these networks"), (TRAINED, "SEEN IN TRAINING by")],
)
def test_a_recorded_flight_is_shown_with_who_saw_it(
    tmp_path: Path,
    split_folder: Path,
    networks: list[str],
    capsys: pytest.CaptureFixture[str],
    flight: str | None,
    seen: str,
) -> None:
    out, name = tmp_path / "demo.html", flight or KEPT
    command = ["demo", "--data", str(split_folder), *networks, "--out", str(out)]
    assert cli.run([*command, "--flight", flight] if flight else command) == 0
    printed = words(capsys.readouterr().out)
    page = out.read_text(encoding="utf-8")
    assert name in printed
    assert seen in printed
    assert f"<b>{name}</b>" in page
    assert f"<b>{seen}" in page
    assert nanobench.content_sha256(nanobench.files(split_folder)[name]) in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--flight", "star_quick"], "no synthetic flight 'star_quick'; expected one of circle"),
        (["--network", "nowhere"], "no trained network 'nowhere'"),
        (["--data", "nowhere"], "nowhere: no such folder"),
        (["--data", "{folder}"], "none of them on the test side of the standard split"),
        (["--data", "{folder}", "--flight", "B2"], "no flight 'B2'; expected B2.csv or .csv.gz"),
        (["--network", "{baseline}"], "expected two different networks; found"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path,
    folder: Path,
    networks: list[str],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    out = tmp_path / "demo.html"
    filled = [part.format(folder=folder, baseline=networks[-1]) for part in options]
    assert cli.run(["demo", *networks, "--out", str(out), *filled]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not out.exists()


def test_without_plotly_the_table_is_printed_all_the_same(
    tmp_path: Path,
    networks: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    out = tmp_path / "demo.html"
    assert cli.run(["demo", *networks, "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert "gravity along x" in printed.out
    assert "error: the page needs plotly: pip install 'ginio[plot]'" in printed.err
    assert not out.exists()
