"""Trends and explore in a real browser: a change is seen, a chart is shared and kept, strangers' texts stay texts."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.async_api import expect
from tests.web._browser import chromium, needs_browser, open_page, served
from tests.web._folders import HOSTILE
from tests.web._history import (
    FIRST,
    KERNEL_WEEK,
    facts,
    make_collapse,
    make_fall,
    make_finished,
    make_history,
    result,
)

from nicbench.core.result import ResultVerdict

pytestmark = [needs_browser, pytest.mark.slow, pytest.mark.sampled(5, of="pages in a browser")]


async def test_a_change_is_seen_with_its_run_and_a_chart_is_shared_and_kept(runs: Path, tmp_path: Path) -> None:
    make_history(runs, KERNEL_WEEK + 8, first=KERNEL_WEEK - 12)
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, address)
            await page.get_by_role("link", name="Trends", exact=True).first.click()
            await page.locator("[data-name=test]").select_option("throughput")
            row = page.locator(".changes tbody tr")
            await expect(row).to_have_count(1)
            await expect(row).to_contain_text("inventory.kernel.release: 6.1.97 → 6.12.7")
            await expect(row.locator(".badge")).to_have_text("worse")
            link = row.get_by_role("link", name=re.compile("2025-12-29"))
            await expect(link).to_have_attribute("href", re.compile("/runs/2025-12-29T023000Z-nightly-25g"))
            chart = page.get_by_role("img", name=re.compile("^throughput: NDR"))
            await chart.press("End")
            await expect(page.locator(".readout")).to_contain_text("Mpps")
            await expect(page.locator(".readout")).to_contain_text("valid, run 2026-")
            series = page.get_by_role("button", name=re.compile("100G")).first
            await series.press("Enter")
            await expect(series).to_have_attribute("aria-pressed", "false")
            await expect(series).to_be_focused()
            division = page.get_by_role("checkbox", name="driver")
            await division.check()
            await expect(page.get_by_role("button", name=re.compile("exb"))).to_have_count(1)
            await expect(division).to_be_focused()
            async with page.expect_response(re.compile("/api/")):  # what was chosen is drawn anew with its answer
                await division.uncheck()
            await expect(page.get_by_role("button", name=re.compile("exb"))).to_have_count(0)
            await expect(series).to_have_attribute("aria-pressed", "true")
            await series.press("Enter")
            await expect(series).to_have_attribute("aria-pressed", "false")
            again, _ = await open_page(browser, page.url)
            await expect(again.locator("[data-name=test]")).to_have_value("throughput")
            await expect(again.get_by_role("button", name=re.compile("100G")).first).to_have_attribute(
                "aria-pressed", "false"
            )
            await expect(again.locator(".changes tbody tr")).to_have_count(1)
            assert wrong == []


async def test_nothing_that_is_pressed_or_chosen_is_lost_while_the_page_is_drawn_anew(runs: Path) -> None:
    make_history(runs, 8)
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/trends?test=throughput")
            await expect(page.get_by_text("16 figures in 2 series.")).to_be_visible()
            chart = page.get_by_role("img", name=re.compile("^throughput: NDR"))
            await chart.press("Home")
            told = await page.locator(".readout").inner_text()
            await chart.press("ArrowRight")
            await page.locator("[data-name=value]").focus()
            await page.evaluate("window.held = document.activeElement")
            both = "for (const name of ['driver', 'kernel']) document.querySelector(`[data-name='by:${name}']`).click()"
            await page.evaluate(both)  # the second before the first is answered
            await expect(page.get_by_role("button", name=re.compile("exb"))).to_have_count(1)
            for name in ("driver", "kernel"):
                await expect(page.get_by_role("checkbox", name=name, exact=True)).to_be_checked()
            assert await page.evaluate("window.held === document.activeElement")
            await chart.press("ArrowLeft")
            assert (await page.locator(".readout").inner_text()).split(" · ")[0] == told.split(" · ")[0]
            assert wrong == []


async def test_runs_of_which_only_a_bound_is_known_are_drawn_and_told_as_below_it(runs: Path, tmp_path: Path) -> None:
    make_collapse(runs)
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/trends?test=throughput")
            row = page.locator(".changes tbody tr")
            await expect(row).to_contain_text("worse")
            await expect(row).to_contain_text("500 kpps → below 1.00 kpps")
            await page.get_by_role("img", name=re.compile("^throughput: NDR")).press("End")
            await expect(page.locator(".readout")).to_contain_text("below 1.00 kpps")
            async with page.expect_download() as waiting:
                await page.get_by_text("SVG", exact=True).click()
            kept = tmp_path / "trend.svg"
            await (await waiting.value).save_as(kept)
            assert len(ElementTree.parse(kept).findall(".//{http://www.w3.org/2000/svg}circle")) == 8
            await page.goto(f"{address}/explore?test=throughput&x=kernel")
            await expect(page.locator("canvas")).to_be_visible()
            assert wrong == []


async def test_a_run_whose_place_is_only_a_bound_is_drawn_there_and_one_without_a_place_is_counted(
    runs: Path, tmp_path: Path
) -> None:
    make_fall(runs)
    where = "explore?test=throughput&value=pdr_frames_per_s&x=value:ndr_frames_per_s"
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/{where}")
            await expect(page.get_by_role("status").filter(has_text="10 figures in 1 series")).to_have_text(
                "10 figures in 1 series; 1 is not drawn, as its NDR is not known."
            )
            await expect(page.locator("figcaption")).to_contain_text("◀ left of its mark")
            await expect(page.locator("figcaption")).to_contain_text("◣ below and left of its mark")
            await page.get_by_role("img", name=re.compile("^throughput: PDR")).press("Home")
            await expect(page.locator(".readout")).to_contain_text("NDR below 1.00 kpps")
            async with page.expect_download() as waiting:
                await page.get_by_role("button", name="SVG").click()
            await (await waiting.value).save_as(tmp_path / "fall.svg")
            drawn = ElementTree.parse(tmp_path / "fall.svg")
            group = drawn.find(".//{http://www.w3.org/2000/svg}g")
            assert group is not None
            assert len(group) == 9
            assert wrong == []


async def test_a_value_is_explored_and_the_chart_is_kept_as_picture_and_numbers(runs: Path, tmp_path: Path) -> None:
    make_history(runs, 6)
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/explore?test=throughput")
            await expect(page.locator("[data-name=x]")).to_have_value("parameter:frame_bytes")
            await page.locator("[data-name=xlog]").check()
            await page.locator("[data-name=x]").select_option("kernel")
            await expect(page).to_have_url(re.compile("x=kernel"))
            await expect(page.get_by_role("img", name="throughput: NDR against kernel")).to_be_visible()
            kept = {}
            for name in ("PNG", "SVG", "CSV", "JSON"):
                async with page.expect_download() as waiting:
                    await page.get_by_text(name, exact=True).click()
                download = await waiting.value
                kept[name] = tmp_path / download.suggested_filename
                await download.save_as(kept[name])
            assert kept["PNG"].read_bytes().startswith(b"\x89PNG")
            drawn = ElementTree.fromstring(kept["SVG"].read_text())
            assert drawn.findtext("{http://www.w3.org/2000/svg}title") == "throughput: NDR against kernel"
            assert len(drawn.findall(".//{http://www.w3.org/2000/svg}circle")) >= 36
            assert len(kept["CSV"].read_text().splitlines()) == 1 + 36
            assert {row["x"] for row in json.loads(kept["JSON"].read_text())["explore"]} == {"6.1.90"}
            assert wrong == []


async def test_the_chart_of_a_single_run_shows_its_day_and_marks_that_are_told_apart(
    runs: Path, tmp_path: Path
) -> None:
    found = [result("throughput", 64, {"ndr_frames_per_s": 23.4e6}, ResultVerdict.VALID)]
    title = "A title-that-is-very-long " * 4
    make_finished(runs, "2026-11-27T120000Z-one", datetime(2026, 11, 27, 12, tzinfo=UTC), title, found, facts("25G", 1))
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/trends")
            await expect(page.get_by_text("1 figure in 1 series.")).to_be_visible()
            async with page.expect_download() as download:
                await page.get_by_role("button", name="SVG").click()
            await (await download.value).save_as(tmp_path / "chart.svg")
            texts = [each.text or "" for each in ElementTree.parse(tmp_path / "chart.svg").iter() if each.text]
            days = {each[:10] for each in texts if re.match(r"20\d\d-", each)}
            assert days
            assert days <= {"2026-11-26", "2026-11-27", "2026-11-28"}
            marks = sorted({float(each.split()[0]) for each in texts if re.fullmatch(r"[\d.]+ Mpps", each)})
            assert len(marks) > 3
            apart = [above - below for below, above in pairwise(marks)]
            assert apart == pytest.approx([apart[0]] * len(apart))
            assert wrong == []


async def test_a_finger_reads_a_point_and_opens_its_run_by_a_second_tap(runs: Path) -> None:
    found = [result("throughput", 64, {"ndr_frames_per_s": 23.4e6}, ResultVerdict.VALID)]
    make_finished(runs, "one", datetime(2026, 11, 27, 12, tzinfo=UTC), "One", found, facts("25G", 1))
    async with chromium() as browser:
        with served(runs) as (address, _):
            phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
            page, wrong = await open_page(browser, f"{address}/trends", **phone)
            await expect(page.get_by_role("heading", name="Badge")).to_be_visible()
            await expect(page.locator(".readout")).to_contain_text("tap it again or press Enter to open its run")
            await page.locator(".u-over").scroll_into_view_if_needed()
            box = await page.locator(".u-over").bounding_box()
            middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            await page.touchscreen.tap(*middle)
            await expect(page.locator(".readout")).to_contain_text("NDR 23.4 Mpps")
            assert page.url == f"{address}/trends"
            await page.touchscreen.tap(*middle)
            await expect(page).to_have_url(f"{address}/runs/one")
            assert wrong == []


async def test_the_names_of_series_are_broken_on_a_narrow_screen(runs: Path) -> None:
    make_history(runs, 3, title="Nightly-of-a-laboratory-whose-name-is-longer-than-a-phone-is-wide" * 2)
    async with chromium() as browser:
        with served(runs) as (address, _):
            for view in ("explore", "trends"):
                where = f"{address}/{view}?test=throughput"
                page, wrong = await open_page(browser, where, viewport={"width": 390, "height": 800})
                await expect(page.get_by_role("button", name=re.compile("100G")).first).to_be_visible()
                assert await page.evaluate("document.documentElement.scrollWidth") == 390
                assert wrong == []


async def test_a_wrong_address_is_explained_and_texts_of_strangers_do_nothing(runs: Path) -> None:
    make_history(runs, 2)
    values = {"ndr_frames_per_s": 1e6}
    for number in range(2):
        found = [result("throughput", 64, values, ResultVerdict.VALID, flows=f"{HOSTILE}{number}")]
        strange = facts("25G", 1) | {HOSTILE: {"kernel": {"release": HOSTILE}}}
        make_finished(runs, f"{number}{HOSTILE.replace('/', '')}", FIRST, HOSTILE, found, strange)
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/trends?by=colour")
            await expect(page.get_by_text("by: there is nothing named 'colour'")).to_be_visible()
            for view in ("trends?p.frame_bytes=64&p.flows=*", "explore?x=kernel"):
                await page.goto(f"{address}/{view}&test=throughput&q=onerror")
                await expect(page.get_by_role("button", name=re.compile("<img src=x onerror=")).first).to_be_visible()
                made = await page.evaluate("[window.broken, document.querySelectorAll('img[onerror]').length]")
                assert made == [None, 0]
                assert "\u202e" not in await page.inner_text("main")
            assert wrong == []
