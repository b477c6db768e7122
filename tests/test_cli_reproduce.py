"""`ginio reproduce` and `ginio report`: done once, stopped anywhere, taken up, told honestly."""

import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_study import CONFIG, STUDY, TinySettings, tiny_source

import ginio
from ginio import cli
from ginio.cli import crew, reproduce, study, study_work
from ginio.cli.crew import Outcome, run_apart
from ginio.cli.study import Job, bundles, plan
from ginio.data.sources import Source
from ginio.evaluation.protocols import TESTS
from ginio.evaluation.results import Results
from ginio.presets import CROSS, NANOBENCH_STUDY, StudyRun
from ginio.training.trainer import Trainer

OUT = Path("runs/nanobench")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, a tiny study, and circles for data."""

    def open_small(_dataset: str, *, split: str, decimate_by: int, **_: object) -> Source:
        return tiny_source(split, decimate_by)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study, "open_source", open_small)
    monkeypatch.setattr(reproduce, "NANOBENCH_STUDY", STUDY)


@pytest.fixture
def steps_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of all optimiser steps."""
    whole, taken = Trainer.take_step, list[int]()

    def take_step(self: Trainer, number: int) -> torch.Tensor:
        taken.append(number)
        return whole(self, number)

    monkeypatch.setattr(Trainer, "take_step", take_step)
    return taken


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Press Ctrl-C in the middle of the n-th optimiser step from now."""
    whole = Trainer.take_step

    def press_at(count: int) -> None:
        left = iter(range(count, -1000, -1))

        def take_step(self: Trainer, number: int) -> torch.Tensor:
            loss = whole(self, number)
            if next(left) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            return loss

        monkeypatch.setattr(Trainer, "take_step", take_step)

    return press_at


def run(*arguments: str) -> int:
    return cli.run(
        ["reproduce", "nanobench", "--smoke", "--steps", "8", "--devices", "cpu", *arguments]
    )


def unjudged(study: Mapping[str, StudyRun]) -> dict[str, StudyRun]:
    """The same networks, judged by next to nothing."""
    return {name: replace(row, protocols=("calibration",)) for name, row in study.items()}


def document(name: str) -> dict[str, Any]:
    return json.loads((OUT / "results" / f"{name}.json").read_text())


def weights(key: str, folder: Path = OUT) -> dict[str, torch.Tensor]:
    return load_file(folder / "runs" / key / "weights.safetensors")


def test_one_command_does_everything_once(
    steps_taken: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--seeds", "0", "1") == 0
    # The main rows with both seeds, the others with one; a given mean takes half the steps.
    assert len(steps_taken) == 8 * (2 * 3 + 1) + 4
    results = Results.read(OUT)
    assert {(r.run, r.seed) for r in results.found} == {
        ("standing still", 0),
        ("strapdown", 0),
        ("standing still-cross", 0),
        ("strapdown-cross", 0),
        *((name, seed) for name in STUDY for seed in (0, 1) if STUDY[name].is_main or not seed),
    }
    assert {r.protocol for r in results.of("ginio-rs", "frame errors")} == {"frame errors"}
    found = document("ginio-rs-1.rotations")
    assert found["made"]["command"] == "ginio reproduce nanobench --seeds 0 1 --steps 8 --smoke"
    assert found["made"]["split_sha256"] == "hash-of-standard"
    assert found["made"]["versions"]["ginio"] == ginio.__version__
    assert found["made"]["steps"] == 8
    assert found["made"]["commit"]
    assert document("ginio-rs-cross-0.rotations")["made"]["split"] == "cross-trajectory"
    assert "See it in a browser: runs/nanobench/report/index.html" in capsys.readouterr().out
    assert "say nothing of any network" in (OUT / "report/index.html").read_text()
    for name, obeys in (("ginio-rs", True), ("resnet1d", False)):
        summary = results.summary(name, "rotations", TESTS[1], "mean_law_error")
        assert summary is not None
        assert (summary.mean < 1e-5) == obeys


def test_what_is_done_is_not_done_again(
    steps_taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ("--seeds", "0", "--runs", "ginio-rs")
    assert run(*chosen) == 0
    before = {p: p.read_bytes() for p in OUT.rglob("*.json")}
    steps_taken.clear()

    def judge(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(study_work.Worker, "judge", judge)
    monkeypatch.setattr(study_work, "trivial_baselines", judge)
    assert run(*chosen) == 0
    assert steps_taken == []
    assert {p: p.read_bytes() for p in OUT.rglob("*.json")} == before
    (OUT / "results/ginio-rs-0.calibration.json").unlink()
    with pytest.raises(AssertionError):
        run(*chosen)
    assert steps_taken == []


@pytest.mark.parametrize("count", [3, 11])
def test_ctrl_c_saves_and_the_next_call_goes_on_as_if_nothing_had_been(
    count: int,
    stop_at: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the first training, and in the second with the first one finished."""
    chosen = ("--seeds", "0", "--runs", "ginio-rs", "given-diagonal")
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(reproduce, "NANOBENCH_STUDY", unjudged(STUDY))
    stop_at(count)
    assert run(*chosen) == 130
    assert "stopped and saved; the same command goes on" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is before
    assert not (OUT / "report").exists()
    stop_at(10_000)
    assert run(*chosen) == 0
    assert run(*chosen, "--out", "unbroken") == 0
    for key in ("ginio-rs-0", "given-diagonal-0"):
        expected = weights(key, Path("unbroken"))
        assert all(torch.equal(v, expected[k]) for k, v in weights(key).items())


def test_a_killed_run_goes_on_from_its_checkpoint(
    steps_taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often as it is saved; here between any two lines."""
    monkeypatch.setattr(study_work, "SAVE_EVERY_S", 0.0)
    whole = study_work.Worker.watch

    def killed(self: study_work.Worker, trainer: Trainer, key: str, stages: float) -> None:
        def power_cut() -> bool:
            if trainer.step > 4:
                raise KeyboardInterrupt
            return False

        whole(replace(self, stopped=power_cut), trainer, key, stages)

    chosen = ("--seeds", "0", "--runs", "resnet1d")
    monkeypatch.setattr(reproduce, "NANOBENCH_STUDY", unjudged(STUDY))
    monkeypatch.setattr(study_work.Worker, "watch", killed)
    assert run(*chosen) == 130
    assert not (OUT / "runs/resnet1d-0/card.json").exists()
    monkeypatch.setattr(study_work.Worker, "watch", whole)
    assert run(*chosen) == 0
    assert steps_taken == [1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8]


def test_a_judging_that_was_stopped_leaves_no_half_a_result(
    monkeypatch: pytest.MonkeyPatch, steps_taken: list[int]
) -> None:
    whole, left = study_work.evaluate, iter(range(3, -1000, -1))

    def press_later(*arguments: Any) -> Any:
        for score in whole(*arguments):
            if next(left) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            yield score

    monkeypatch.setattr(study_work, "evaluate", press_later)
    chosen = ("--seeds", "0", "--runs", "ginio-rs")
    assert run(*chosen) == 130
    assert not (OUT / "results/ginio-rs-0.rotations.json").exists()
    assert (OUT / "runs/ginio-rs-0/card.json").exists()
    steps_taken.clear()
    assert run(*chosen) == 0
    assert steps_taken == []


def test_one_that_fails_is_told_and_keeps_no_other_from_being_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = replace(STUDY["resnet1d"], config=replace(CONFIG, fitted="covariance"))
    monkeypatch.setattr(
        reproduce, "NANOBENCH_STUDY", {"resnet1d": broken, "ginio-rs": STUDY["ginio-rs"]}
    )
    assert run("--seeds", "0") == 1
    assert "failed: resnet1d-0: a given mean and fitting 'covariance'" in capsys.readouterr().out
    assert (OUT / "results/ginio-rs-0.remounting.json").exists()
    main = (OUT / "report/main.csv").read_text().splitlines()
    resnet = next(line for line in main if line.startswith("ResNet1D"))
    assert resnet == "ResNet1D,none,body,,,,,,0.645,,,,,0.71,,,,,"


def test_other_settings_are_refused_before_anything_is_done(
    steps_taken: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--seeds", "0", "--runs", "ginio-rs")
    assert run(*chosen) == 0
    steps_taken.clear()
    assert run(*chosen, "--steps", "16") == 2
    message = capsys.readouterr().err
    assert "ginio-rs-0 was begun with steps 8; expected 16" in message
    assert steps_taken == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "huge"], "no run huge; expected some of ginio-rs, resnet1d"),
        (["--devices", "abacus"], "device 'abacus' cannot be used"),
        (["--seeds"], "expected at least one seed; found none"),
        (["--devices"], "expected at least one device; found none"),
    ],
)
def test_what_cannot_work_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_a_report_needs_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["report", "nanobench", "nowhere"]) == 2
    assert "nowhere: expected results/*.json, as a study leaves; found none" in (
        capsys.readouterr().err
    )
    (Path("bad") / "results").mkdir(parents=True)
    (Path("bad") / "results/x.json").write_text("{}")
    assert cli.run(["report", "nanobench", "bad"]) == 2
    assert "x.json: expected a result of a study; found KeyError" in capsys.readouterr().err


def test_a_report_is_the_same_without_the_networks(capsys: pytest.CaptureFixture[str]) -> None:
    """It reads results and nothing else."""
    assert run("--seeds", "0", "--runs", "ginio-rs") == 0
    first = {p.name: p.read_bytes() for p in (OUT / "report").iterdir()}
    for path in (OUT / "runs/ginio-rs-0").iterdir():
        path.unlink()
    assert cli.run(["report", "nanobench", str(OUT)]) == 0
    assert {p.name: p.read_bytes() for p in (OUT / "report").iterdir()} == first


# Jobs


def test_the_study_of_the_paper_can_be_planned() -> None:
    jobs = plan(NANOBENCH_STUDY, (), (0, 1, 2))
    assert len({job.key for job in jobs}) == len(jobs)
    main = [name for name, row in NANOBENCH_STUDY.items() if row.is_main]
    assert len([n for n in main if n.endswith(CROSS)]) == len(main) / 2 == 9
    assert len(jobs) == len(NANOBENCH_STUDY) + 2 * len(main)


def test_a_mean_comes_before_what_takes_it_and_in_the_same_process() -> None:
    jobs = plan(NANOBENCH_STUDY, ("given-spectral", "given-diagonal"), (3,))
    assert [job.name for job in jobs] == ["ginio-rs-mse", "given-diagonal", "given-spectral"]
    assert {job.seed for job in jobs} == {3}
    every = plan(NANOBENCH_STUDY, (), (0, 1))
    taken = bundles(every)
    assert sorted(j.key for mine in taken for j in mine) == sorted(j.key for j in every)
    for first, *behind in taken:
        assert first.run.given is None
        assert {(job.run.given, job.seed) for job in behind} <= {(first.name, first.seed)}


def test_workers_share_the_work_and_their_failures_are_told(tmp_path: Path) -> None:
    """Processes of their own, as on several devices; one of their jobs cannot be done."""
    broken = replace(STUDY["resnet1d"], config=replace(CONFIG, fitted="covariance"))
    jobs = [
        Job("ginio-a-reduced", 0, STUDY["ginio-a-reduced"]),
        Job("resnet1d", 0, broken),
    ]
    settings = TinySettings.smoke(folder=tmp_path / "study", data=None, steps=2, command="")
    told: list[tuple[int, float, str]] = []
    outcome = run_apart(bundles(jobs), settings, ("cpu", "cpu"), lambda *line: told.append(line))
    assert outcome.is_whole
    assert [failure.split(":")[0] for failure in outcome.failures] == ["resnet1d-0"]
    assert (tmp_path / "study/results/ginio-a-reduced-0.rotations.json").exists()
    assert {worker for worker, _, _ in told} <= {0, 1}
    assert max(stages for _, stages, _ in told) >= 2
    done = [text for _, _, text in told if text.endswith(": done")]
    assert done == ["ginio-a-reduced-0: done"]


def test_a_worker_that_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        exitcode = -9

    class Silent:
        def get(self, **_: float) -> None:
            raise crew.queue.Empty

    outcomes = crew.listen([Gone()], Silent(), lambda *_: None)
    assert outcomes == {0: Outcome(("worker 0 ended with exit code -9",))}


def test_packed_results_give_the_same_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All results of a study fit one small file, which may be all that is kept of it."""
    assert run("--seeds", "0", "--runs", "ginio-rs") == 0
    packed = OUT / "report/results.jsonl.xz"
    assert cli.run(["report", "nanobench", str(packed), "--out", str(tmp_path / "again")]) == 0
    tables = sorted(OUT.glob("report/*.csv"))
    assert len(tables) > 10
    for table in tables:
        assert (tmp_path / "again" / table.name).read_text() == table.read_text()
    capsys.readouterr()
    whole = packed.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"no archive"):
        packed.write_bytes(damaged)
        assert cli.run(["report", "nanobench", str(packed)]) == 2
        assert "results.jsonl.xz: expected packed results of a study" in capsys.readouterr().err
