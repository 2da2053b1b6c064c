"""The charts of a run's page in a real browser: the heat map, and zooms by fingers, keys and mouse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect
from tests.web._browser import chromium, is_settled, needs_browser, open_page, served, touch
from tests.web._folders import begun, finished, make_run, started, trials

pytestmark = [needs_browser, pytest.mark.slow, pytest.mark.sampled(5, of="pages in a browser")]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def chart(page: Page, title: str) -> Locator:
    """A chart by its title."""
    return page.locator("figure.chart", has=page.get_by_text(title, exact=True))


async def readout(figure: Locator) -> str:
    return await figure.locator(".readout").inner_text()


def id_in(text: str) -> str:
    """The trial that a readout is of."""
    found = re.search(r"\bt\d{4}\b", text)
    assert found, text
    return found[0]


async def shades(figure: Locator) -> int:
    """How many shades of blue the canvas has."""
    return int(
        await figure.locator("canvas").evaluate(
            """(canvas) => {
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const seen = new Set();
                for (let at = 0; at < data.length; at += 4) {
                    const [red, green, blue, opaque] = data.slice(at, at + 4);
                    if (opaque === 255 && blue > red + 8) seen.add(`${red} ${green} ${blue}`);
                }
                return seen.size;
            }"""
        )
    )


async def test_the_heat_map_tells_each_cell_by_keys_and_all_of_it_as_a_table(runs: Path) -> None:
    disturbed = trials(1, first=7, note="others were at work")
    make_run(runs, "one", started("Heat") + begun() + trials(6) + disturbed + finished())
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/runs/one")
            heat = chart(page, "Latency over time")
            area = heat.get_by_role("img", name="Latency over time")
            await is_settled(page, "t0007")
            await expect(area).to_have_accessible_description(re.compile("Of all frames of these 7 columns, half took"))
            assert await shades(heat) > 4
            await area.press("Home")
            assert re.match(r"20.0 µs to 25.1 µs: .* frames .*t0001 search · 520 kpps.*after 1 s$", await readout(heat))
            await area.press("ArrowUp")
            assert re.match(r"25.1 µs to 31.6 µs: [\d ]+ frames \(\d", await readout(heat))
            await area.press("End")
            await area.press("ArrowUp")
            assert re.match(r"25.1 µs to 31.6 µs: .*t0007 .*invalid: others were at work", await readout(heat))
            await heat.get_by_text("The distributions as a table").click()
            await expect(heat.get_by_role("row", name=re.compile("^t0004 4 s ≥ 20.0 µs"))).to_have_count(1)
            assert wrong == []


async def test_two_fingers_zoom_one_moves_and_a_button_shows_all_again(runs: Path) -> None:
    folder = make_run(runs, "one", started("Fingers") + begun() + trials(40))
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/runs/one", **PHONE)
            search = chart(page, "Latency over time")
            await is_settled(page, "t0040")
            await search.scroll_into_view_if_needed()
            back = search.get_by_role("button", name="Show all")
            await expect(back).to_be_hidden()
            box = await search.locator(".u-over").bounding_box()
            at = box["y"] + box["height"] / 2
            left, middle, right = (box["x"] + box["width"] * share for share in (0.3, 0.5, 0.7))
            await touch(page, [(left, at)], [(middle, at)])  # nothing is zoomed: it reads what is there
            await expect(search.locator(".readout")).to_contain_text(re.compile(" t002\\d "))
            await touch(page, [(middle - 20, at), (middle + 20, at)], [(left, at), (right, at)])
            await expect(back).to_be_visible()
            await touch(page, [(middle, at)])
            before = await readout(search)
            await touch(page, [(left, at)], [(middle, at)], [(right, at)])
            await touch(page, [(middle, at)])
            await expect(search.locator(".readout")).not_to_have_text(before)
            assert id_in(await readout(search)) < id_in(before)  # earlier trials came into view
            with (folder / "journal.ndjson").open("a") as journal:
                journal.write(trials(1, first=41))
            await expect(page.get_by_role("row", name=re.compile("^t0041"))).to_have_count(1)
            await expect(back).to_be_visible()  # the view stays while the run goes on
            await back.tap()
            await expect(back).to_be_hidden()
            assert await page.evaluate("visualViewport.scale") == 1
            assert wrong == []


async def test_keys_and_the_mouse_zoom_and_escape_shows_all_again(runs: Path) -> None:
    make_run(runs, "one", started("Keys") + begun() + trials(40) + finished())
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/runs/one")
            search = chart(page, "The search")
            back = search.get_by_role("button", name="Show all")
            area = search.get_by_role("img", name="The search")
            await is_settled(page, "t0040")
            await area.press("End")
            await area.press("+")
            await expect(back).to_be_visible()
            await area.press("Home")  # the view follows
            await expect(search.locator(".readout")).to_have_text(re.compile("^t0001"))
            await area.press("Escape")
            await expect(back).to_be_hidden()
            await search.scroll_into_view_if_needed()
            box = await search.locator(".u-over").bounding_box()
            await page.mouse.move(box["x"] + 50, box["y"] + 30)
            await page.mouse.down()
            await page.mouse.move(box["x"] + 150, box["y"] + 30)
            await page.mouse.up()
            await expect(back).to_be_visible()
            await back.press("Enter")
            await expect(back).to_be_hidden()
            assert await area.evaluate("(area) => area === document.activeElement")  # and not lost with the button
            assert wrong == []
