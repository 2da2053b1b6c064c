"""The pages in a real browser: a run is watched, stopped, killed and resumed; a server dies; strangers' texts."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import expect
from tests.web._browser import chromium, needs_browser, nicbench, open_page, pause_at, running, sees, served
from tests.web._folders import HOSTILE, begun, finished, make_run, note, started, trials
from tests.web._history import FIRST, facts, make_finished, result

from nicbench.core.events import TestStarted, TrialStarted
from nicbench.core.result import ResultVerdict
from nicbench.stats.activity import TimeLeft
from nicbench.store.marks import is_asked_to_stop
from nicbench.store.now import NowFile

pytestmark = [needs_browser, pytest.mark.slow]
TEST = TestStarted(test="throughput", method="throughput", points=2, estimate_s=60.0)
TRIAL = TrialStarted(
    test="throughput",
    parameters={"frame_bytes": 64},
    purpose="search",
    load_frames_per_s=1e6,
    duration_s=60.0,
    repeat=0,
)


@pytest.mark.acceptance
async def test_two_browsers_watch_a_run_to_its_end_and_its_own_page_says_what_it_cost(
    runs: Path,
) -> None:
    async with chromium() as browser:
        with served(runs) as (address, _), running(runs, "[64]", "--live") as (folder, process):
            own = process.stderr.readline().decode().removeprefix("live page: ").strip()
            pause_at(process, b"t0001")
            seen = [await open_page(browser, each) for each in (own, f"{address}/runs/{folder.name}")]
            for page, _ in seen:
                await sees(page, "running")
                await expect(page.locator("h1")).to_have_text("Watched")
                await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_enabled()
            process.send_signal(signal.SIGCONT)
            for page, wrong in seen:
                await sees(page, "valid")
                await expect(page.locator(".log")).to_contain_text("the run is complete: valid")
                await expect(page.locator(".log")).to_contain_text("A live page was served beside this run")
                await expect(page.get_by_role("row", name=re.compile("^t0001 first"))).to_have_count(1)
                await expect(page.locator(".chart canvas").first).to_be_visible()
                series = page.get_by_role("button", name="▲ loss", exact=True).first
                await series.press("Enter")
                await expect(series).to_have_attribute("aria-pressed", "false")
                assert wrong == []
            assert process.wait(60) == 0
            (live, _), (page, _) = seen
            await expect(live.locator("#link")).to_contain_text("the server of this page with it")
            await expect(
                live.get_by_role("row", name=re.compile("64 bytes, 100 % .*Frame loss rate .* % valid"))
            ).to_have_count(1)
            await expect(live.locator('a[href^="/"]')).to_have_count(0)
            await expect(live.get_by_role("row", name=re.compile("^t0001 first"))).to_have_count(1)
            (folder / "report.html").write_text("<h1>The report</h1>")
            await page.get_by_role("link", name="The report of this run").click()
            await expect(page.locator("h1")).to_have_text("The report")


@pytest.mark.sampled(5, of="pages in a browser")
async def test_a_run_is_stopped_after_its_test_resumed_and_stopped_at_once(runs: Path) -> None:
    async with chromium() as browser:
        with served(runs) as (address, _):
            with running(runs, "[64, 1518]") as (folder, process):
                pause_at(process, b"t0001")
                page, wrong = await open_page(browser, f"{address}/runs/{folder.name}")
                page.on("dialog", lambda dialog: dialog.accept())
                await page.get_by_role("button", name="Stop after this test").click()  # once a test has begun
                await expect(page.get_by_text("It ends after the present test.")).to_be_visible()
                process.send_signal(signal.SIGCONT)
                await sees(page, "stopped early")
                assert process.wait(60) == 130
            await expect(page.locator(".log")).not_to_contain_text("test second")
            with nicbench("resume", str(folder), "--no-report") as process:
                pause_at(process, b"test second")
                await sees(page, "running")
                await expect(page.locator(".log")).to_contain_text("test second")
                await page.get_by_role("button", name="Stop", exact=True).click()
                await expect(page.get_by_text("Stopping: it undoes its changes.")).to_be_visible()
                process.send_signal(signal.SIGCONT)
                await sees(page, "stopped early")
                assert process.wait(60) == 130
            assert wrong == []


@pytest.mark.sampled(5, of="pages in a browser")
async def test_a_run_is_killed_and_resumed_under_the_page(runs: Path) -> None:
    async with chromium() as browser:
        with served(runs) as (address, _):
            with running(runs, "[64]") as (folder, process):
                pause_at(process, b"t0003")
                page, wrong = await open_page(browser, f"{address}/runs/{folder.name}")
                await expect(page.get_by_role("row", name=re.compile("^t0003"))).to_have_count(1)
                process.kill()
                await sees(page, "elsewhere, or just ended")
                await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_disabled()
            with nicbench("resume", str(folder), "--no-report") as process:
                pause_at(process, b"t0005")
                await sees(page, "running")
                process.send_signal(signal.SIGCONT)
                await expect(page.locator(".log")).to_contain_text("the run goes on")
                await sees(page, "valid")
            assert wrong == []


@pytest.mark.sampled(5, of="pages in a browser")
async def test_a_page_connects_again_when_the_server_was_killed_and_started(runs: Path) -> None:
    folder = make_run(runs, "one", started("Long") + begun() + trials(3))
    async with chromium() as browser:
        with served(runs) as (address, process):
            page, _ = await open_page(browser, f"{address}/runs/one")
            await expect(page.get_by_role("row", name=re.compile("^t0003"))).to_have_count(1)
            process.kill()
            await expect(page.locator("#link")).to_contain_text("no connection")
        with (folder / "journal.ndjson").open("a") as journal:
            journal.write(trials(1, first=4) + finished())
        with served(runs, int(address.rpartition(":")[2])):
            await sees(page, "valid")
            await expect(page.locator("#link")).to_have_text("")
            for number in range(1, 5):
                await expect(page.get_by_role("row", name=f"t000{number}")).to_have_count(1)


@pytest.mark.sampled(5, of="pages in a browser")
async def test_a_run_is_stopped_by_a_page_that_a_server_before_this_one_sent(
    runs: Path, conducted: tuple[Path, subprocess.Popen[bytes]]
) -> None:
    folder, controller = conducted
    left = TimeLeft([("throughput", 100.0)])
    async with chromium() as browser:
        with served(runs) as (address, server):
            for event in (TEST, TRIAL):
                left.note(event)
            NowFile(folder).note(TRIAL, left.estimate)  # now: the page has a minute to show what is left
            page, wrong = await open_page(browser, f"{address}/runs/one")
            page.on("dialog", lambda dialog: dialog.accept())
            await sees(page, "running")
            await expect(page.get_by_text(re.compile("^about [4-9]. s left$"))).to_be_visible()  # it moves in the trial
            token = await page.locator("meta[name=nicbench-token]").get_attribute("content")
            server.kill()
            await expect(page.locator("#link")).to_contain_text("no connection")
        with served(runs, int(address.rpartition(":")[2])):
            await expect(page.locator("#link")).to_have_text("")
            await page.get_by_role("button", name="Stop after this test").click()
            await expect(page.get_by_text("It ends after the present test.")).to_be_visible()
            assert is_asked_to_stop(folder)
            await page.get_by_role("button", name="Stop", exact=True).click()
            assert await asyncio.to_thread(controller.wait, 60) == 7
            assert await page.locator("meta[name=nicbench-token]").get_attribute("content") != token
            assert wrong == []


@pytest.mark.sampled(5, of="pages in a browser")
async def test_a_folder_without_runs_says_how_the_first_is_made_and_shows_it_when_it_begins(runs: Path) -> None:
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, address)
            await expect(page.get_by_text("nicbench demo --simulated")).to_be_visible()
            for useless in ("table", "form", ".buttons"):
                await expect(page.locator(useless).first).to_be_hidden()
            make_run(runs, "one", started("The first"))
            await expect(page.get_by_role("link", name="The first")).to_be_visible()
            await expect(page.get_by_text("nicbench demo --simulated")).to_be_hidden()
            await expect(page.get_by_label("search")).to_be_visible()
            await page.goto(f"{address}/trends")
            await expect(page.get_by_text("No run has ended with a number yet")).to_be_visible()
            assert wrong == []


@pytest.mark.sampled(5, of="pages in a browser")
async def test_rows_of_the_list_are_whole_on_a_phone(runs: Path) -> None:
    title = "A title of some length that is longer than a phone is wide"
    values = {"ndr_frames_per_s": 1e6}
    make_finished(runs, "one", FIRST, title, [result("throughput", 64, values, ResultVerdict.VALID)], facts("25G", 1))
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, address, viewport={"width": 390, "height": 844})
            row = page.locator("tbody tr")
            for cell in (row.get_by_text("valid", exact=True), row.get_by_role("link"), row.get_by_role("checkbox")):
                box = await cell.bounding_box()
                assert 0 <= box["x"] < box["x"] + box["width"] <= 390
            assert wrong == []


@pytest.mark.sampled(5, of="pages in a browser")
async def test_a_phone_shows_all_of_each_trial(runs: Path) -> None:
    make_run(runs, "one", started("One") + begun() + trials(3))
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/runs/one", viewport={"width": 390, "height": 844})
            row = page.get_by_role("region", name="Trials and rounds").locator("tbody tr").first
            for cell in await row.locator("th, td").all():
                box = await cell.bounding_box()
                assert 0 <= box["x"] < box["x"] + box["width"] <= 390
            await expect(row).to_contain_text("valid")
            assert wrong == []


@pytest.mark.sampled(5, of="pages in a browser")
async def test_a_run_that_others_measured_is_not_said_to_have_measured_nothing(runs: Path) -> None:
    found = [result("throughput", 64, {"ndr_frames_per_s": 1e6}, ResultVerdict.IMPORTED)]
    make_finished(runs, "one", FIRST, "Theirs", found, {})
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, f"{address}/runs/one")
            await expect(page.get_by_text("its results were imported")).to_be_visible()
            await expect(page.get_by_text("Trials and rounds")).to_be_hidden()
            await expect(page.get_by_text("Where frames were lost")).to_be_hidden()
            assert wrong == []


@pytest.mark.sampled(5, of="pages in a browser")
async def test_the_list_is_filtered_sorted_and_shared_and_texts_of_strangers_do_nothing(runs: Path) -> None:
    for number in range(120):
        title = f"{'Late' if number < 10 else 'Run'} {number:03d}"
        make_run(runs, f"2026-01-01T1200{number:02d}Z-run", started(title))
    name = HOSTILE.replace("/", "")
    lines = note(HOSTILE) + begun(HOSTILE) + trials(2, test=HOSTILE, note=HOSTILE)
    make_run(runs, name, started(HOSTILE) + lines + finished())
    async with chromium() as browser:
        with served(runs) as (address, _):
            page, wrong = await open_page(browser, address)
            await expect(page.locator("tbody tr")).to_have_count(100)
            await page.get_by_label("search").fill("late")
            await expect(page.locator("tbody tr")).to_have_count(10)
            await page.get_by_role("button", name="title").press("Enter")
            await expect(page.locator("tbody tr").first).to_contain_text("Late 000")
            await expect(page.get_by_role("button", name="title")).to_be_focused()
            for row in (0, 1):
                await page.locator("tbody input").nth(row).check()
            await expect(page.get_by_role("link", name="Compare the two selected")).to_be_visible()
            again, _ = await open_page(browser, page.url)
            await expect(again.locator("tbody tr")).to_have_count(10)
            await expect(again.locator("tbody input:checked")).to_have_count(2)
            await expect(again.locator("th[aria-sort=ascending]")).to_contain_text("title")
            await page.locator("tbody a").first.press("Enter")
            await expect(page.locator("h1")).to_have_text("Late 000")
            assert wrong == []
            for path in ("/?q=onerror", f"/runs/{quote(name)}"):
                page, wrong = await open_page(browser, address + path)
                await expect(page.get_by_text("<img src=x onerror=").first).to_be_visible()
                made = await page.evaluate("[window.broken, document.images.length, document.scripts.length]")
                assert made == [None, 0, 2]
                assert "\u202e" not in await page.inner_text("main")
                assert wrong == []
