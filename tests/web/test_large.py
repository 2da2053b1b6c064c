"""A list of 100,000 runs and a run of 10,000 trials in a browser: how long a reader waits, and what the page needs."""

from __future__ import annotations

import os
import re
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
MOST_MB = 200
HEAT = "document.querySelector('.wide-row .area')"
LIST = "document.querySelector('select')"
OLDER = "[...document.querySelectorAll('button')].find((each) => each.textContent === 'Older')"
ACTS = {
    "another frame size": f"{LIST}.selectedIndex = 2; {LIST}.dispatchEvent(new Event('change'));",
    "a step along the heat map": f"{HEAT}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Home'}}));",
    "a zoom of it": f"{HEAT}.dispatchEvent(new KeyboardEvent('keydown', {{key: '+'}}));",
    "a list of older trials": f"{OLDER}.click();",
}
Say = Callable[[str, object], None]


async def first_paint_ms(page: Page) -> float:
    """When the browser first drew something of the page, since it was asked for."""
    return float(
        await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()")
    )


async def memory(page: Page) -> str:
    """What the page needs, in words: what its scripts hold, and what its process has of its own and altogether.

    Its own is less than 200 MB, however busy the machine.
    """
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    scripts_mb = float(await page.evaluate("performance.memory.usedJSHeapSize")) / 1e6
    browser = page.context.browser
    info = await (await browser.new_browser_cdp_session()).send("SystemInfo.getProcessInfo")
    renderers = [each["id"] for each in info["processInfo"] if each["type"] == "renderer"]
    own_mb, all_mb = max(tuple(_status_mb(int(pid), name) for name in ("RssAnon", "VmRSS")) for pid in renderers)
    assert own_mb < MOST_MB
    return f"scripts hold {scripts_mb:.1f} MB, the page's process {own_mb:.0f} MB of its own ({all_mb:.0f} MB resident)"


def _status_mb(pid: int, name: str) -> float:
    """An entry of /proc/PID/status (proc(5)), which is in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)[1]) * 1024 / 1e6  # type: ignore[index]


async def answered(page: Page, act: str) -> str:
    """How long after something was done, by a script, the browser has drawn what it led to; and the CPU time of it.

    Where others use the machine, the first is longer than the second.
    """
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})

    async def spent_s() -> float:
        metrics = (await session.send("Performance.getMetrics"))["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    before_s = await spent_s()
    elapsed_ms = await page.evaluate(
        f"""() => new Promise((done) => {{
            const began = performance.now();
            {act}
            requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
        }})"""
    )
    return f"{elapsed_ms:.0f} ms ({1000 * (await spent_s() - before_s):.0f} ms of CPU time)"


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
            said.append(await memory(page))
    said.append(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
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
            for what, act in ACTS.items():
                said.append(f"{what} is drawn in {await answered(page, act)}")
            said.append(await memory(page))
            assert wrong == []
    said.append(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    record_property("shown", "; ".join(said))
