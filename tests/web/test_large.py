"""A list of 100,000 runs and a run of 10,000 trials in a browser: how long a reader waits, and what the page needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.web._browser import chromium, needs_browser, open_page, served
from tests.web._folders import long_journal, make_run, started

from nicbench.store.index import list_indexed_runs

pytestmark = [needs_browser, pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(1200)]
RUNS = 100_000
TRIALS = 10_000
WAIT_MS = 120_000
Say = Callable[[str, object], None]


async def first_paint_ms(page: Page) -> float:
    """When the browser first drew something of the page, since it was asked for."""
    return float(
        await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()")
    )


async def memory_mb(page: Page) -> float:
    """What the scripts of the page hold once what they no longer need is gone."""
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    return float(await page.evaluate("performance.memory.usedJSHeapSize")) / 1e6


async def test_100_000_runs_are_listed_filtered_and_sorted(runs: Path, record_property: Say) -> None:
    methods = ("throughput", "latency", "stream")
    for number in range(RUNS):
        title = f"{methods[number % 3]} of card {number % 97}"
        make_run(runs, f"2026-01-01T{number:06d}Z-run-{number}", started(title))
    began = time.monotonic()
    list_indexed_runs(runs, lambda _: None)
    said = [f"index of {RUNS} new folders {time.monotonic() - began:.1f} s"]
    async with chromium() as browser:
        with served(runs) as (address, _):
            began = time.monotonic()
            page, _ = await open_page(browser, address)
            said.append(f"first paint {await first_paint_ms(page):.0f} ms")
            await expect(page.locator("tbody tr")).to_have_count(100, timeout=WAIT_MS)
            said.append(f"first rows after a start {time.monotonic() - began:.1f} s")
            await page.reload()
            began = time.monotonic()
            await expect(page.locator("tbody tr")).to_have_count(100, timeout=WAIT_MS)
            said.append(f"rows of the next page {1000 * (time.monotonic() - began):.0f} ms")
            for query in ("", "q=card+42", "q=card+42&sort=title", "sort=title", "method=latency", "from=50000"):
                waited = await page.evaluate(
                    """async (query) => {
                        const began = performance.now();
                        await (await fetch(`/api/runs?${query}`)).text();
                        return performance.now() - began;
                    }""",
                    query,
                )
                said.append(f"?{query} {waited:.0f} ms")
            said.append(f"scripts hold {await memory_mb(page):.1f} MB")
    record_property("shown", "; ".join(said))


async def test_a_run_of_10_000_trials_opens_and_is_looked_at(runs: Path, record_property: Say) -> None:
    make_run(runs, "long", long_journal(TRIALS))
    async with chromium() as browser:
        with served(runs) as (address, _):
            began = time.monotonic()
            page, wrong = await open_page(browser, f"{address}/runs/long")
            said = [f"first paint {await first_paint_ms(page):.0f} ms"]
            await expect(page.locator(".chart canvas").first).to_be_visible()
            said.append(f"first chart {time.monotonic() - began:.1f} s")
            await expect(page.locator(".badge")).to_have_text("valid", timeout=WAIT_MS)
            await expect(page.get_by_text(f"of {TRIALS // 1000} 000, the last first")).to_be_visible(timeout=WAIT_MS)
            said.append(f"all {TRIALS} trials {time.monotonic() - began:.1f} s")
            drawn = await page.evaluate(
                """() => {
                    const began = performance.now();
                    const list = document.querySelector("select");
                    list.selectedIndex = 2;
                    list.dispatchEvent(new Event("change"));
                    return performance.now() - began;
                }"""
            )
            said += [f"another frame size is drawn in {drawn:.0f} ms", f"scripts hold {await memory_mb(page):.1f} MB"]
            assert wrong == []
    record_property("shown", "; ".join(said))
