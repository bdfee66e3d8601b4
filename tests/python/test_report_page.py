"""The page: self-contained, escaped, complete, and drawn in a real browser."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from report_runs import LABELS, write_run

from astraea.report import build, load, picture
from astraea.report.block import block
from astraea.report.errors import ReportError
from astraea.report.section import VALUE_BUDGET, section

ROOT = Path(__file__).resolve().parents[2]
NASTY = 'A <b>link</b> & "trace"</script><script>document.title = "owned"</script>'
DRAWN = "document.documentElement.dataset.charts === 'done'"


def varying(t: np.ndarray) -> np.ndarray:
    return 8 + 5 * np.sin(t / 3)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a plain run, a trace link with one flow and a nasty title, completions, and a sweep."""
    base = tmp_path_factory.mktemp("report")
    lives = [(0.0, 20.0), (5.0, 20.0), (10.0, 15.0)]
    trace = {"link": {"lte": {"trace": "some/where.down"}}, "flow": [{"count": 1}]}
    sweep = [(f"rate {rate}Mbps", {"link.bottleneck.rate": f"{rate}Mbps"}) for rate in (10, 20, 40)]
    runs = [
        write_run(base / "plain", lives=lives),
        write_run(base / "trace", title=NASTY, trials=1, lives=[(0.0, 20.0)], capacity=varying, scenario=trace),
        write_run(base / "requests", title="Requests", lives=lives[:2], completions=True, schemes=LABELS[:2]),
        write_run(base / "sweep", title="Sweep", lives=lives[:2], points=sweep, schemes=LABELS[1:3], trials=2),
    ]
    return build(runs, base / "report.html")


class Resources(HTMLParser):
    """Collects the values of attributes that make a browser load something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        self.ids += [value or "" for name, value in attrs if name == "id"]


def test_nothing_is_loaded_from_elsewhere(page: Path) -> None:
    text = page.read_text()
    parser = Resources()
    parser.feed(text)
    assert parser.found, "the page has links"
    assert all(value.startswith("#") or value == "data:," for value in parser.found)
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(\s*['\"]?(https?:)?//", text[: text.index("</style>")])
    assert len(parser.ids) == len(set(parser.ids))


def test_text_from_files_stays_text(page: Path) -> None:
    text = page.read_text()
    assert "&lt;b&gt;link&lt;/b&gt;" in text
    assert "<b>link</b>" not in text
    assert 'document.title = "owned"' not in text


def test_the_data_are_valid_json(page: Path) -> None:
    text = page.read_text().split('id="report-data">')[1].split("</script>")[0]
    data = json.loads(text)
    assert set(data["index"]) == set(LABELS[:3])
    plain = data["blocks"]["three-flows-40-s-apart"]
    assert set(plain["charts"]) == {"throughput", "delay", "jain", "convergence", "tradeoff"}
    assert "completion" in data["blocks"]["requests"]["charts"]
    assert len([key for key in data["blocks"] if key.startswith("sweep-")]) == 4


def test_runs_of_one_name_and_of_the_names_of_the_page_have_places_of_their_own(tmp_path: Path) -> None:
    """Two runs of one title, of which one's point could be taken for the other, and titles that are the page's own."""
    points = [(f"rate {rate}", {"rate": rate}) for rate in (1, 2, 3)]
    short = partial(write_run, schemes=("alpha",), trials=1, lives=[(0.0, 4.0), (1.0, 3.0)])
    runs = [
        short(tmp_path / "a", title="Two", points=points),
        short(tmp_path / "b", title="Two"),
        short(tmp_path / "c", title="Report data"),
        short(tmp_path / "d", title="Metrics"),
    ]
    html = build(runs, tmp_path / "page.html").read_text()
    parser = Resources()
    parser.feed(html)
    assert len(parser.ids) == len(set(parser.ids))
    data = json.loads(re.findall(r'<script[^>]*id="report-data"[^>]*>(.*?)</script>', html, re.DOTALL)[0])
    assert set(data["blocks"]) == {"two--sweep", "two--p0", "two--p1", "two--p2", "two-2", "report-data-2", "metrics-2"}
    assert "moving average over 0.1 s" in html, "a fortieth of what a short run lasts"


def test_a_page_does_not_replace_what_it_is_made_from(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", lives=[(0.0, 5.0)])
    before = (run / "results.json").read_bytes()
    for name in ("results.json", "series.parquet"):
        with pytest.raises(ReportError, match=f"{name}: is what the report is made from"):
            build([run], tmp_path / "run" / name)
    assert (run / "results.json").read_bytes() == before


def test_the_same_runs_give_the_same_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", trials=1, lives=[(0.0, 4.0)])
    first = build([run], tmp_path / "a.html").read_bytes()
    assert build([run], tmp_path / "b.html").read_bytes() == first


def test_a_run_without_series_still_has_its_tables(tmp_path: Path) -> None:
    lives = [(0.0, 4.0), (0.0, 4.0)]
    run = load(write_run(tmp_path / "run", lives=lives, series=False, links=False))
    made = block(run, {cc: i for i, cc in enumerate(run.schemes)}, "a", "", 1000)
    assert [chart.key for chart in made.charts] == ["convergence"]
    assert "utilization" in build([run.path], tmp_path / "report.html").read_text()


def test_a_single_flow_has_no_fairness(tmp_path: Path) -> None:
    run = load(write_run(tmp_path / "run", lives=[(0.0, 4.0)], trials=1))
    made = block(run, {cc: i for i, cc in enumerate(run.schemes)}, "a", "", 1000)
    assert [chart.key for chart in made.charts] == ["throughput", "delay", "tradeoff"]
    kinds = {line["kind"] for line in made.charts[0].data["throughput"]["lines"]}
    assert kinds == {"flow"}


@pytest.mark.parametrize("known", [True, False])
def test_a_sweep_speaks_of_intervals_where_it_has_some(tmp_path: Path, known: bool) -> None:
    points = [(f"rate {rate}", {"link.bottleneck.rate": rate}) for rate in (1, 2)]
    run = load(write_run(tmp_path / "run", trials=3 if known else 1, lives=[(0.0, 2.0)], points=points))
    overview = section(run, {cc: i for i, cc in enumerate(run.schemes)}, "a").overview
    assert overview is not None
    assert overview.how == ("Mean over trials with its 95 % interval." if known else "Mean over trials.")


def test_only_as_many_trials_as_fit_are_embedded(tmp_path: Path) -> None:
    run = load(write_run(tmp_path / "run", schemes=LABELS, trials=6, lives=[(float(i), 12.0) for i in range(9)]))
    made = section(run, {cc: i for i, cc in enumerate(run.schemes)}, "a")
    shown, embedded = made.blocks[0].shown, made.blocks[0].embedded
    assert shown in embedded
    assert 1 < len(embedded) < 6
    values = sum(len(line["y"]) for line in made.blocks[0].charts[0].data["throughput"]["lines"])
    assert values <= VALUE_BUDGET


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_picture_is_drawn(tmp_path: Path, suffix: str) -> None:
    run = write_run(tmp_path / "run", lives=[(0.0, 20.0), (5.0, 20.0)])
    out = picture.converging(run, tmp_path / f"flows{suffix}", schemes=["gamma", "alpha"])
    if suffix == ".png":
        assert out.read_bytes().startswith(b"\x89PNG")
        return
    texts = [element.text for element in ET.parse(out).iter("{http://www.w3.org/2000/svg}text")]
    assert {"gamma", "alpha", "Mbit/s", "time (s)"} <= set(texts)
    assert "beta" not in texts


@pytest.fixture(scope="module")
def artifacts() -> Path:
    """Where pictures are left for people to look at; whichever test runs first makes it."""
    path = ROOT / "out" / "test-artifacts"
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="module")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(chromium, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def opened(browser: Browser, page: Path, request: pytest.FixtureRequest) -> Browser:
    """The page, open and drawn, in the size and mode that the test asks for."""
    width, dark = getattr(request, "param", (1280, False))
    browser.errors.clear()
    browser.requests.clear()
    browser.view(width, dark=dark)
    browser.open("about:blank")
    browser.open(page.as_uri())
    browser.wait(DRAWN)
    return browser


VIEWS = {
    "wide-light": (1280, False),
    "wide-dark": (1280, True),
    "narrow-light": (390, False),
    "narrow-dark": (390, True),
}


@pytest.mark.parametrize(("opened", "name"), [(view, name) for name, view in VIEWS.items()], indirect=["opened"])
def test_the_page_opens_and_every_chart_is_drawn(opened: Browser, artifacts: Path, name: str) -> None:
    opened.screenshot(artifacts / f"report-{name}.png")
    assert opened.errors == []
    assert all(url.startswith(("file:", "about:", "data:")) for url in opened.requests)
    charts = opened.evaluate(
        """[...document.querySelectorAll('[data-chart]')].filter(e => !e.closest('details:not([open])')).map(e =>
        [e.closest('figure').id, e.querySelectorAll('svg [class*=mark-] path, svg [class*=mark-] line').length])"""
    )
    assert len(charts) == 5 + 3 + 6 + 1
    assert [chart for chart, marks in charts if not marks] == []
    width = opened.evaluate("document.documentElement.scrollWidth")
    assert width == VIEWS[name][0], "nothing sticks out"
    assert opened.evaluate("document.title") == "Astraea report"


MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
DEMO = re.findall(r"^DEMO := (.*)$", MAKEFILE, re.MULTILINE)[0].split(",")


def test_thirteen_schemes_with_eleven_metrics_fit(browser: Browser, tmp_path: Path) -> None:
    lives = [(0.0, 4.0), (1.0, 4.0)]
    run = write_run(tmp_path / "run", schemes=DEMO, trials=1, lives=lives, series=False, links=False)
    results = json.loads((run / "results.json").read_text())
    for entries in (results["summary"], results["points"][0]["summary"]):
        for number, cc in enumerate(DEMO):  # as `make demo` has them
            for entry in entries[cc].values():
                entry.update(mean=0.667, low=-0.0812, high=0.0812)
            entries[cc]["loss"] = {"mean": 8.39e-5, "low": 8.38e-5, "high": 8.40e-5, "n": 3}
            entries[cc]["convergence_settle_s"] = {"mean": 18.2 - number, "low": -5.2, "high": 41.5, "n": 3}
    assert (len(DEMO), len(results["summary"]["astraea"])) == (13, 11)
    (run / "results.json").write_text(json.dumps(results))
    page = build([run], tmp_path / "report.html")
    browser.view(1280)
    browser.open(page.as_uri())
    browser.wait(DRAWN)
    sizes = "(() => { const e = document.querySelector('.table'); return [e.scrollWidth, e.clientWidth]; })()"
    for width in (1920, 1440, 1280, 400):
        browser.view(width)
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        content, room = browser.evaluate(sizes)
        assert (content == room) == (width >= 1280), "all columns are in view"
    colours = browser.evaluate("[...document.querySelectorAll('.key')].map(e => getComputedStyle(e).backgroundColor)")
    assert len(set(colours)) == len(DEMO)
    # Of an interval that reaches below zero no bar leaves the plot.
    bars = "document.querySelectorAll('[data-chart=convergence] svg .mark-rule[class*=layer_]')"
    clipped = browser.evaluate(f"[...{bars}].map((bar) => bar.closest('[clip-path]') !== null)")
    assert clipped == [True, True]


def test_the_theme_follows_the_system_and_the_button(opened: Browser) -> None:
    background = "getComputedStyle(document.querySelector('.view svg')).backgroundColor"
    assert opened.evaluate(background) == "rgb(255, 255, 255)"
    opened.evaluate("document.getElementById('theme').click()")
    opened.wait(f"{DRAWN} && {background} === 'rgb(25, 28, 33)'")
    assert opened.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
    opened.evaluate("localStorage.clear()")
    assert opened.errors == []


def test_another_trial_and_another_metric_can_be_chosen(opened: Browser) -> None:
    lines = "document.querySelector('#three-flows-40-s-apart--throughput .view svg').innerHTML"
    title = "document.querySelector('#sweep--sweep--sweep .role-axis-title text').textContent"
    before, metric = opened.evaluate(lines), opened.evaluate(title)
    change = """(() => { const s = document.querySelector('%s'); s.selectedIndex = (s.selectedIndex + 1) %% s.length;
    s.dispatchEvent(new Event('change')); })()"""
    opened.evaluate(change % "[data-trial]")
    opened.wait(DRAWN)
    opened.evaluate(change % "[data-choice]")
    opened.wait(DRAWN)
    assert opened.evaluate(lines) != before
    assert opened.evaluate(title) != metric
    assert opened.errors == []


def test_a_point_of_a_sweep_is_drawn_when_it_is_opened(opened: Browser) -> None:
    marks = "document.querySelectorAll('details.point .view svg').length"
    assert opened.evaluate(marks) == 0
    opened.evaluate("document.querySelector('details.point').open = true")
    opened.wait(f"{marks} === 5")
    assert opened.errors == []


def test_a_tooltip_tells_the_values(opened: Browser) -> None:
    place = opened.evaluate(
        """(() => { const e = document.querySelector('#three-flows-40-s-apart--throughput svg');
        e.scrollIntoView({block: 'center'});
        const r = [...e.querySelectorAll('.mark-rule.layer_3_marks line, .mark-rule line')]
            .map(l => l.getBoundingClientRect()).filter(r => r.height > 50)[60];
        return [r.x + r.width / 2, r.y + r.height / 2]; })()"""
    )
    for shift in (0, 1, 0):
        opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0] + shift / 4, y=place[1])
    opened.wait("document.querySelector('#vg-tooltip-element.visible') !== null")
    text = opened.evaluate("document.getElementById('vg-tooltip-element').innerText")
    assert "time (s)" in text
    assert "Mbit/s" in text
    assert "NaN" not in text


def test_charts_are_saved_as_svg(opened: Browser, artifacts: Path) -> None:
    opened.evaluate(
        """window.saved = []; URL.createObjectURL = (blob) => { saved.push(blob); return 'data:,'; };
        HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
        document.querySelectorAll('#three-flows-40-s-apart [data-export]').forEach((b) => b.click());"""
    )
    opened.wait("saved.length === 10")
    texts = opened.evaluate("Promise.all(saved.filter((x) => x instanceof Blob).map((blob) => blob.text()))")
    names = opened.evaluate("saved.filter((x) => typeof x === 'string')")
    assert "three-flows-40-s-apart--throughput.svg" in names
    for text in texts:
        root = ET.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 5
    (artifacts / "report-throughput.svg").write_text(max(texts, key=len))
