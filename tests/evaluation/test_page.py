import json
import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
import torch
from strategies import assert_near
from tiny_runs import TINY, TINY_RESNET, make_run

from ginio.data.synthetic import QuadrotorConfig, Shape, Speed, fly_one
from ginio.evaluation import page
from ginio.evaluation.page import PlotlyMissingError, Story, render
from ginio.evaluation.remount import Row, describe, mountings, track

VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}
LOADING = {"src", "href", "srcset", "action", "data", "poster", "background", "formaction"}
RUNS = {"ours": make_run(TINY), "theirs": make_run(TINY_RESNET)}


class Page(HTMLParser):
    """What a browser would make of a page: its tags, and the text between some of them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        self.texts[inside] = self.texts.get(inside, "") + data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.tags if found == tag]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    config = QuadrotorConfig(shapes=(Shape.STAR,), speeds=(Speed.FAST,), duration_s=15.0)
    flight = fly_one(config, 0, seed=8)
    return [
        Row(m, {label: track(run, flight, m.R_ms) for label, run in RUNS.items()})
        for m in mountings(seed=0)
    ]


@pytest.fixture(scope="module")
def story(rows: list[Row]) -> Story:
    return Story(
        flight="star_fast_0000",
        origin="simulated",
        exposure="SEEN IN TRAINING by ours",
        reading="Turning changes little & much.",
        networks={label: describe(run) for label, run in RUNS.items()},
        rows=rows,
        provenance=[("seed", "8"), ("ginio", "<now>")],
    )


@pytest.fixture(scope="module")
def text(story: Story) -> str:
    return render(story)


@pytest.fixture(scope="module")
def drawn(text: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text)
    assert found is not None
    return json.loads(found[1])


def test_the_page_is_well_formed(text: str) -> None:
    assert text.startswith("<!DOCTYPE html>")
    assert Page(text).open == []


def test_the_page_loads_nothing(text: str) -> None:
    parsed = Page(text)
    assert {"link", "img", "iframe", "object", "embed", "base"}.isdisjoint(
        tag for tag, _ in parsed.tags
    )
    assert [name for _, attributes in parsed.tags for name in attributes if name in LOADING] == []
    policy = next(m["content"] for m in parsed.all("meta") if m.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "connect-src" not in policy
    assert "http" not in policy
    assert "url(" not in parsed.texts["style"]
    assert "@import" not in parsed.texts["style"]


def test_the_page_says_what_the_story_tells(text: str, rows: list[Row]) -> None:
    parsed = Page(text)
    prose = " ".join(parsed.texts.values())
    assert parsed.texts["title"] == "ginio demo: star_fast_0000"
    assert "SEEN IN TRAINING by ours" in parsed.texts["b"]
    assert "Turning changes little & much." in prose
    assert "is built so that its answer and its uncertainty turn" in prose
    assert "is an ordinary network" in prose
    assert "<now>" in parsed.texts["dd"]
    for row in rows:
        assert row.mounting.name in parsed.texts["button"]
        for of_network in row.tracks.values():
            assert f"{of_network.errors['ate_se3']:.3f}" in parsed.texts["td"]
    assert len([b for b in parsed.all("button") if "data-mounting" in b]) == len(rows)
    assert len([tr for tr in parsed.all("tr") if "data-row" in tr]) == len(rows)


def test_every_element_that_the_script_fills_is_there(text: str) -> None:
    parsed = Page(text)
    script = text[text.rindex("<script>") :]
    ids = {attributes["id"] for _, attributes in parsed.tags if "id" in attributes}
    named = set(re.findall(r'getElementById\("(\w+)"\)|react\("(\w+)"', script))
    listed = {name for group in re.findall(r"of \[([^\]]*)\]", script) for name in group.split('"')}
    wanted = {name for pair in named for name in pair if name} | {n for n in listed if n.isalpha()}
    assert wanted >= {"figures", "path", "error", "uncertainty", "note", "honesty", "ellipsoids"}
    assert wanted <= ids


def test_every_mounting_is_drawn(drawn: list[dict[str, Any]], rows: list[Row]) -> None:
    assert len(drawn) == len(rows)
    for figures, row in zip(drawn, rows, strict=True):
        assert figures["note"].startswith(f"{row.mounting.name}: ")
        for name in ("path", "error", "uncertainty"):
            for trace in figures[name]["data"]:
                lengths = {len(trace[axis]) for axis in "xyz" if axis in trace}
                assert len(lengths) == 1
                assert all(math.isfinite(value) for value in trace["x"])


def test_axes_have_units_and_colours_mean_one_network(drawn: list[dict[str, Any]]) -> None:
    scene = drawn[0]["path"]["layout"]["scene"]
    assert [scene[f"{a}axis"]["title"]["text"] for a in "xyz"] == ["x, m", "y, m", "z, m"]
    for name in ("error", "uncertainty"):
        layout = drawn[0][name]["layout"]
        axes = [axis for key, axis in layout.items() if re.fullmatch(r"[xy]axis\d?", key)]
        assert all(re.search(r", (m|s|m/s)$", axis["title"]["text"]) for axis in axes)
    for number, label in enumerate(RUNS):
        colors = {
            trace["line"]["color"]
            for name in ("path", "error")
            for trace in drawn[0][name]["data"]
            if trace["name"] == label
        }
        assert colors == {page.STYLES[number]["color"]}


def test_the_views_hold_what_they_should(drawn: list[dict[str, Any]], rows: list[Row]) -> None:
    for figures, row in zip(drawn, rows, strict=True):
        truth = row.tracks["ours"].p_true_w
        everything = [truth, *(of_network.odometry.p_w for of_network in row.tracks.values())]
        for view, paths in (("truth", [truth]), ("all", everything)):
            low, high = torch.tensor(figures["views"][view], dtype=torch.float64).unbind(-1)
            assert all(bool(((low < path) & (path < high)).all()) for path in paths)


def test_ellipsoids_lie_at_two_standard_deviations(rows: list[Row]) -> None:
    shown = rows[0].tracks["ours"]
    mesh = page.ellipsoids(shown, 0.5)
    points = torch.tensor([mesh["x"], mesh["y"], mesh["z"]], dtype=torch.float64).mT
    assert max(*mesh["i"], *mesh["j"], *mesh["k"]) < len(points)
    chosen, _ = page._drawn(shown)
    sigma = shown.odometry.measurement.covariance.matrix()[chosen].double()
    offsets = points.view(len(chosen), -1, 3) - shown.odometry.p_w[chosen].unsqueeze(1)
    squared = torch.einsum("npa,nab,npb->np", offsets, sigma.inverse(), offsets)
    assert_near(squared / (2 * 0.5) ** 2, torch.ones_like(squared), 1e-2)


def test_the_sphere_is_closed(rows: list[Row]) -> None:
    points, triangles = page.unit_sphere()
    assert_near(points.norm(dim=-1), torch.ones_like(points[:, 0]), 1e-12)
    corners = points[triangles]
    across = torch.linalg.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outwards = (across * corners.mean(1)).sum(-1)
    # The volume under all triangles, if they leave no hole and face one way.
    assert float((across * corners[:, 0]).sum(-1).sum().abs()) / 6 == pytest.approx(4.19, rel=0.05)
    assert bool((outwards >= -1e-12).all()) or bool((outwards <= 1e-12).all())


@pytest.mark.parametrize(
    ("value", "expected"), [(1.0, 1.0), (1.9, 1.0), (2.0, 2.0), (0.07, 0.05), (940.0, 500.0)]
)
def test_nice_numbers_are_below(value: float, expected: float) -> None:
    assert page.nice(value) == pytest.approx(expected)


def test_the_band_is_two_standard_deviations(rows: list[Row]) -> None:
    shown = rows[0].tracks["ours"]
    traces = page.uncertainty_figure(shown)["data"]
    std, error = shown.velocity_std_w().double(), shown.velocity_error_w().double()
    for axis in range(3):
        low, high, line = (torch.tensor(t["y"]).double() for t in traces[3 * axis : 3 * axis + 3])
        assert_near(high, 2 * std[:, axis], 1e-4)
        assert_near(low, -high, 1e-4)
        assert_near(line, error[:, axis], 1e-4)


def test_names_cannot_break_the_page(story: Story, rows: list[Row]) -> None:
    evil = "</script><b>$x"
    renamed = [
        Row(row.mounting, {evil: row.tracks["ours"], "b & c": row.tracks["theirs"]}) for row in rows
    ]
    networks = {evil: "is evil", "b & c": "is not"}
    text = render(replace(story, flight="<i>", rows=renamed, networks=networks))
    parsed = Page(text)
    assert parsed.open == []
    assert len(parsed.all("script")) == 3
    assert parsed.texts["title"] == "ginio demo: <i>"
    assert evil in parsed.texts["b"]


def test_without_plotly_there_is_a_clear_message(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(PlotlyMissingError, match=r"pip install 'ginio\[plot\]'"):
        render(story)
