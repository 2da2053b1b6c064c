"""Chromium, a server in a process of its own, and runs in others: what a test of the pages in a browser needs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (apt-get install chromium)")
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
BENCH = """\
nicbench: 1
title: Watched
seed: 1
lab: {kind: simulated, capacity: 500 kpps, queue_frames: 256, delay: 20 us}
dut: {kind: simulated}
tests:
  - name: first
    method: throughput
    frame_bytes: FIRST
    search: {kind: mlr, precision: 0.5 %}
    trial: {duration: 200 ms, drain: 50 ms, settle: 10 ms}
  - name: second
    method: frame-loss
    frame_bytes: [64]
    trial: {duration: 200 ms, drain: 50 ms, settle: 10 ms}
"""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser without a window."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


async def open_page(browser: Browser, address: str, **options: Any) -> tuple[Page, list[str]]:
    """A page in a context of its own, and what went wrong in it: errors, what the policy refused, other servers."""
    context = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    wrong = []
    host = re.match(r"https?://[^/]+", address)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    page.on("request", lambda asked: None if host and asked.url.startswith(host[0]) else wrong.append(asked.url))
    await page.goto(address)
    return page, wrong


async def sees(page: Page, state: str | re.Pattern[str]) -> None:
    """Waits until the page says that the run is in this state."""
    await expect(page.locator(".badge")).to_have_text(state, timeout=PATIENCE_MS)


async def is_settled(page: Page, row: str) -> None:
    """Waits until the page of a run shows this trial and the state of the run, after which nothing moves on it."""
    await expect(page.get_by_role("row", name=re.compile(f"^{row}"))).to_have_count(1)
    await expect(page.locator(".badge").first).not_to_have_text("…")


async def touch(page: Page, *places: Sequence[tuple[float, float]]) -> None:
    """Moves fingers over a page, from one list of places to the next, and takes them away."""
    session = await page.context.new_cdp_session(page)
    for number, fingers in enumerate(places):
        points = [{"x": x, "y": y, "id": each} for each, (x, y) in enumerate(fingers)]
        kind = "touchMove" if number else "touchStart"
        await session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    await session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@contextmanager
def served(runs: Path, port: int = 0, options: Sequence[str] = ()) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server of these runs; gives its address and its process."""
    command = [sys.executable, "-m", "nicbench", "web", str(runs), "--port", str(port), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        said = process.stderr.readline().decode()
        found = re.search(r"https?://\S+", said)
        assert found, said + process.stderr.read().decode()
        yield found[0].rstrip("/"), process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@contextmanager
def running(
    runs: Path, first: str, *options: str, bench: str = BENCH
) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A run of two tests on a simulated lab, the first at these frame sizes, or of another bench file.

    Gives its folder and its process.
    """
    file = runs.parent / "watched.yaml"
    file.write_text(bench.replace("FIRST", first))
    with nicbench("run", str(file), "--runs", str(runs), "--no-report", *options) as process:
        said = process.stderr.readline().decode()
        yield Path(said.removeprefix("run folder: ").strip()), process


def pause_at(process: subprocess.Popen[bytes], said: bytes) -> None:
    """Holds a run once it has said this, so that a page sees this state however busy the machine; SIGCONT ends it."""
    assert process.stderr is not None
    while said not in (line := process.stderr.readline()):
        assert line, f"the run ended without a word of {said!r}"
    process.send_signal(signal.SIGSTOP)


@contextmanager
def nicbench(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of nicbench, which is ended where it has not ended by itself."""
    process = subprocess.Popen([sys.executable, "-m", "nicbench", *arguments], stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
