"""Runs on real interfaces under the eyes of pages: from start to end, killed and resumed, and stopped by a page."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.web._browser import chromium, needs_browser, nicbench, open_page, running, sees, served

from .lab_bench import machine_state, short

pytestmark = [pytest.mark.lab, needs_browser]

ENDED = re.compile("^(valid|disturbed)$")  # others may use the machine meanwhile


@pytest.mark.acceptance  # `make test` has this of a simulated lab
async def test_a_run_is_watched_from_start_to_end_by_two_browsers(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    bench = short("{kind: kernel-forward}", trials=12, duration="1 s")  # so long that both pages see it run
    async with chromium() as one, chromium() as other:
        with served(runs) as (address, _), running(runs, "", "--live", bench=bench) as (folder, process):
            assert process.stderr is not None
            own = process.stderr.readline().decode().removeprefix("live page: ").strip()
            seen = [await open_page(one, own), await open_page(other, f"{address}/runs/{folder.name}")]
            for page, _ in seen:
                await sees(page, "running")
            for page, wrong in seen:
                await sees(page, ENDED)
                await expect(page.locator(".log")).to_contain_text("making the testbed")
                await expect(
                    page.get_by_role("row", name=re.compile("throughput .* 64 bytes .* search")).first
                ).to_be_visible()
                heat = page.get_by_role("img", name="Latency over time")
                await expect(heat.locator("canvas")).to_be_visible()
                await heat.press("End")
                await expect(page.get_by_text(re.compile("µs: .* frames .* search"))).to_be_visible()
                assert wrong == []
            assert process.wait(60) == 0


@pytest.mark.acceptance  # `make test` has this of a simulated lab
async def test_a_run_is_killed_resumed_and_stopped_under_an_open_page(tmp_path: Path) -> None:
    before = machine_state()
    runs = tmp_path / "runs"
    runs.mkdir()
    bench = short("{kind: kernel-forward}", trials=12, duration="1 s")
    async with chromium() as browser:
        with served(runs) as (address, _):
            with running(runs, "", bench=bench) as (folder, process):
                page, wrong = await open_page(browser, f"{address}/runs/{folder.name}")
                page.on("dialog", lambda dialog: dialog.accept())
                await expect(page.get_by_role("row", name=re.compile("^t0002"))).to_have_count(1)
                process.send_signal(signal.SIGKILL)
                await sees(page, "elsewhere, or just ended")
            with nicbench("resume", str(folder), "--no-report") as process:
                await sees(page, "running")
                await expect(page.locator(".log")).to_contain_text("the run goes on")
                await expect(page.get_by_role("row", name=re.compile("^t0005"))).to_have_count(1)
                await page.get_by_role("button", name="Stop", exact=True).click()
                await sees(page, "stopped early")
                assert process.wait(60) == 130
            assert wrong == []
    assert machine_state() == before
