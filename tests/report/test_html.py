"""The page is one file, whole, readable without network, and harmless whatever a bench file says."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import html5lib
import pytest
from tests.web._browser import chromium, needs_browser, open_page

from nicbench import report
from nicbench.core.plan import Layout
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.measure.completing import add_near_limits
from nicbench.report import html
from nicbench.report.model import Report
from nicbench.store import RunFolder

from . import _editors
from ._documents import page_of
from .test_rounds import finished, missing

XHTML = "{http://www.w3.org/1999/xhtml}"
TEXT = "data:text/plain;base64,"


def parsed(page: str) -> Any:
    """The page as a browser reads it; any error of syntax is refused."""
    return html5lib.HTMLParser(strict=True).parse(page)


def text_of(page: str) -> str:
    """What is read on the page; cells and lines are parted by a blank, other blanks stay what they are."""
    return re.sub(r"[ \n]+", " ", " ".join(parsed(page).find(f"{XHTML}body").itertext()))


def test_the_page_loads_nothing(page: str) -> None:
    tree = parsed(page)
    names = {str(element.tag).rpartition("}")[2] for element in tree.iter()}

    assert names.isdisjoint({"link", "img", "iframe", "object", "embed", "base", "form"})
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert name.rpartition("}")[2] not in ("src", "srcset", "data", "action")
            if name.rpartition("}")[2] == "href":
                # A place of the page, a file beside it, or text that the page holds and a browser saves.
                assert value.startswith(("#", "./")) or ("download" in element.attrib and value.startswith(TEXT))
            assert not re.search(r"url\((?!#)", value)
    style = tree.find(f".//{XHTML}style").text
    assert "@import" not in style
    assert "url(" not in style


def test_a_browser_is_told_to_load_nothing_and_to_run_the_one_script_of_the_page(page: str) -> None:
    script = parsed(page).find(f".//{XHTML}script")
    said = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()

    assert page.count("<script") == 1
    assert dict(script.attrib) == {"type": "module"}  # it waits for the page, and keeps its names to itself
    assert f"default-src 'none'; script-src 'sha256-{said}';" in page
    assert not re.search(r"\beval\b|Function\(|innerHTML|https?:", script.text)
    assert len(script.text.encode()) < 28 * 1024


def test_the_answer_the_verdict_and_the_plain_words_come_before_the_tables(page: str, view: Report) -> None:
    text = text_of(page)
    order = [
        text.index(part) for part in (view.headline, "valid", view.statements[0], "Throughput", "Latency at 100 %")
    ]

    assert order == sorted(order)
    assert "not a network card" in text[: text.index("Throughput")]


def test_every_trial_that_something_disturbed_is_listed_with_its_load_and_loss(page: str, view: Report) -> None:
    found = {name: trial for name, trial in view.known_trials.items() if trial.verdict.findings}
    assert f"{len(view.known_trials)} trials, {len(found)} of them disturbed" in text_of(page)
    rows = {}
    for each in parsed(page).iter(f"{XHTML}table"):
        first, *rest = ([*row.iter(f"{XHTML}th"), *row.iter(f"{XHTML}td")] for row in each.iter(f"{XHTML}tr"))
        heads = ["".join(cell.itertext()) for cell in first]
        if heads[0] == "Trial" and heads[-1] == "Verdict":
            for cells in rest:
                texts = ["".join(cell.itertext()).replace("\u202f", "") for cell in cells]
                rows[texts[0].partition(", repeat")[0]] = dict(zip(heads, texts, strict=True))
    assert list(rows) == list(found)
    for name, trial in found.items():
        load, lost = (float(rows[name][head]) for head in ("Load[kpps]", "Lost[%]"))
        assert load == pytest.approx(trial.request.load_frames_per_s / 1e3, rel=1e-4)
        assert lost == pytest.approx(100 * trial.reading.counts.loss_ratio, rel=1e-2)


def test_each_chart_is_drawn_for_a_screen_and_for_a_phone(page: str) -> None:
    assert page.count('<div class="wide"><svg ') == page.count('<div class="narrow"><svg ') == 5


def test_no_two_elements_share_an_id(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)

    assert len(ids) == len(set(ids))
    for reference in re.findall(r"url\(#([^)]+)\)", page):
        assert reference in ids


def test_the_charts_take_their_colours_from_the_page(page: str) -> None:
    drawings = "".join(re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL))

    assert "var(--series-1" in drawings
    assert set(re.findall(r"#[0-9a-f]{6}\b", re.sub(r"var\([^)]*\)", "", drawings))) <= {"#000000", "#ffffff"}


def test_what_was_tested_is_disclosed(page: str, view: Report) -> None:
    """The bench file is in the page, too, as a file to be saved."""
    (saved,) = (link for link in parsed(page).iter(f"{XHTML}a") if link.get("download") == "bench.yaml")
    assert base64.b64decode(saved.get("href").removeprefix(TEXT)).decode() == view.bench_text
    text = text_of(page)
    for part in (
        "net.ipv4.ip_forward",
        "6.1.0-18-amd64",
        "AMD EPYC 7B13",
        "--no-pci --no-huge",
        "DPDK 22.11.4",
        "shared cores",
        "trial duration 1 s, RFC 2544 section 24 asks for 60 s",
        "20 ms",
        "5\u202f% of the transmission",
        "nicbench run examples/kernel-forward.yaml",
        "±",
        "DUT, backlog of CPU 1",
        "BIOS version unknown",
    ):
        assert part in text


def test_a_disturbed_run_marks_the_result_and_gives_the_reason(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.measure((64, 128), latency=False, disturbed_size=64)
    text = text_of(report.build(run.finish(ResultVerdict.DISTURBED)).read_text(encoding="utf-8"))

    assert "64 *" in text
    assert "128 *" not in text
    assert "* 64 bytes: 1 of its 8 trials was invalid" in text
    assert "Search at 64 bytes: NDR: the least disturbed of 4 trials" in text
    assert "Longest gap 31.4 ms" in text


def test_a_run_without_a_plan_still_has_a_page(synthetic: Any, tmp_path: Path) -> None:
    run = synthetic.SyntheticRun(tmp_path)
    page = report.build(run.folder.path).read_text(encoding="utf-8")

    assert "Nothing was measured" in text_of(page)
    assert "the run ended before its plan was written" in text_of(page).lower()


def test_a_method_the_report_does_not_know_is_listed(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.publish(
        "burst", Result(id="burst/64", method="burst", parameters={}, values={"longest_burst_frames": 31, "x": None})
    )

    text = text_of(report.build(run.folder.path).read_text(encoding="utf-8"))
    assert "Longest burst 31 frames" in text
    assert "X unknown" in text


@pytest.mark.parametrize(
    ("method", "values", "said"),
    [
        ("throughput", {"ndr_frames_per_s": Bounded(value=1e6), "ceiling_frames_per_s": 1e6}, "64 bytes: 1.000 Mpps"),
        ("latency", {"latency_p50_ns": 10, "tester_latency_p50_ns": 9}, "64 bytes: "),
        (
            "single-core",
            {"frame_rate_frames_per_s": Bounded(value=1e6), "ceiling_frames_per_s": 1e6},
            "64 bytes: 1.000 Mpps",
        ),
    ],
)
def test_a_result_near_the_testers_own_limit_says_so(
    synthetic_run: Callable[..., Any], method: str, values: dict[str, Any], said: str
) -> None:
    result = Result(id=f"{method}/64", method=method, parameters={"frame_bytes": 64, "size": "64"}, values=values)
    for judged, is_said in ((add_near_limits(result), True), (result, False)):
        run = synthetic_run()
        run.publish(method, judged)
        text = text_of(report.build(run.folder.path).read_text(encoding="utf-8"))
        assert (f"own limit: {said}" in text) is is_said


def test_a_latency_that_was_not_measured_says_why(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.publish(
        "latency",
        Result(
            id="latency/64/100",
            method="latency",
            scope="per port",
            parameters={"frame_bytes": 64, "load_of": "NDR", "load_percent": 100.0},
            values={"latency_mean_ns": Bounded(value=None, reason_null="no frame came back")},
        ),
    )

    text = text_of(report.build(run.folder.path).read_text(encoding="utf-8"))
    assert "nothing measured: no frame came back" in text


def test_making_a_report_changes_nothing_else(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.measure((64,))
    path = run.finish()
    before = {file.name: file.read_bytes() for file in path.iterdir()}

    made = report.build(path)

    assert made == path / "report.html"
    assert {file.name: file.read_bytes() for file in path.iterdir() if file != made} == before
    assert RunFolder.open(path).differences() == ()


@needs_browser
@pytest.mark.slow
async def test_the_first_table_of_results_stands_whole_on_a_phone(whole_run: Path) -> None:
    made = report.build(whole_run)
    async with chromium() as browser:
        page, _ = await open_page(browser, made.as_uri(), viewport={"width": 390, "height": 844})
        table = page.locator(".overview > .result")
        needed, given = await table.evaluate("(box) => [box.scrollWidth, box.clientWidth]")
    assert needed <= given


def test_the_same_folder_gives_the_same_page(whole_run: Path, page: str) -> None:
    assert report.build(whole_run).read_text(encoding="utf-8") == page


PAGES = ("whole", "datasheet", "disturbed", "editors", "rounds")
STYLE = html.style()


@pytest.fixture(scope="module")
def trees(whole_run: Path, synthetic: Any, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Pages as a browser reads them; an error of syntax is refused."""
    folder = tmp_path_factory.mktemp("pages")
    disturbed = synthetic.SyntheticRun(folder).start()
    disturbed.measure((64, 1518), disturbed_size=1518)
    studied = _editors.write(folder, _editors.results(instances=(1, 2), runs=2), ("1x100", "4x25"))
    pages = {
        "whole": report.build(whole_run).read_text(encoding="utf-8"),
        "datasheet": page_of(whole_run, Layout.DATASHEET),
        "disturbed": report.build(disturbed.finish(ResultVerdict.DISTURBED)).read_text(encoding="utf-8"),
        "editors": report.build(studied).read_text(encoding="utf-8"),
        "rounds": report.build(finished(folder, missing)).read_text(encoding="utf-8"),
    }
    parse = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse
    return {name: parse(page) for name, page in pages.items()}


@pytest.fixture(params=PAGES)
def tree(request: pytest.FixtureRequest, trees: Mapping[str, Any]) -> Any:
    return trees[request.param]


def test_a_page_says_its_language_its_title_and_where_its_main_part_is(tree: Any) -> None:
    assert tree.get("lang") == "en"
    assert tree.find(".//title").text.strip()
    assert len(tree.findall(".//main")) == len(tree.findall(".//h1")) == 1


def test_ids_are_unique_and_links_lead_to_them(tree: Any) -> None:
    ids = [element.get("id") for element in tree.iter() if element.get("id")]

    assert len(ids) == len(set(ids))
    for link in tree.iter("a"):
        if link.get("href").startswith("#"):
            assert link.get("href")[1:] in ids


def test_headings_go_down_one_level_at_a_time(tree: Any) -> None:
    levels = [int(element.tag[1]) for element in tree.iter() if re.fullmatch(r"h[1-6]", str(element.tag))]

    assert levels[0] == 1
    assert all(below <= above + 1 for above, below in itertools.pairwise(levels))


def test_every_table_has_heads_that_say_what_they_are_the_heads_of(tree: Any) -> None:
    for table in tree.iter("table"):
        heads = list(table.iter("th"))
        assert heads, "".join(table.itertext())[:80]
        for head in heads:
            assert head.get("scope") in ("col", "row", "colgroup", "rowgroup"), "".join(head.itertext())


def test_no_head_of_a_column_is_empty(tree: Any) -> None:
    for row in (row for head in tree.iter("thead") for row in head.iter("tr")):
        assert all("".join(cell.itertext()).strip() for cell in row.iter("th"))


def test_every_drawing_has_a_name(tree: Any) -> None:
    for drawing in (element for element in tree.iter() if str(element.tag).endswith("svg")):
        assert drawing.get("role") == "img"
        assert drawing.get("aria-label", "").strip()


def test_every_folded_part_says_what_is_in_it(tree: Any) -> None:
    for folded in tree.iter("details"):
        assert "".join(folded[0].itertext()).strip()
        assert folded[0].tag == "summary"


TEXTS = ("ink", "muted", "accent", "good", "warn", "bad")
GROUNDS = ("paper", "raised", "warn-paper")


@pytest.mark.parametrize("place", [0, 1, 2], ids=["light", "dark", "print"])
def test_every_text_stands_out_from_every_ground(place: int) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1 of text; 1.4.11: 3 to 1 of what must be seen in a drawing."""
    colours = list(palettes())[place]
    for ground in GROUNDS:
        for text in TEXTS:
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for series in (name for name in colours if name.startswith("series-")):
        assert contrast(colours[series], colours["paper"]) >= 3.0, series


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def palettes() -> Iterator[dict[str, str]]:
    """The colours of the style sheet, by name: those of light, of dark, and of paper."""
    for block in re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL):
        yield dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block))


def contrast(one: str, other: str) -> float:
    """The ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio")."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Relative, 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
