"""Makes the pictures of the documents from runs of today's nicbench, so that they never show an earlier one.

The runs are simulated or imported: the same on every machine, and valid. Screenshots are taken by Chromium. The
recording of the terminal is drawn by Rich; its lines appear when the run printed them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
NICBENCH = ROOT / ".venv/bin/nicbench"
COMMAND = ("run", "examples/simulated.yaml")
COLUMNS = 120
_DESKTOP, _PHONE, _SHEET = (1280, 900), (500, 1000), (1000, 1180)
_TABLE = """Card,Frame size [bytes],Frame rate [Mpps],% of line rate
Example 25G,64,37.20,100
Example 25G,512,5.87,100
Example 25G,1518,2.03,100
"""
_IMPORT = (
    *(
        "import",
        "results.csv",
        "--method",
        "throughput",
        "--configuration",
        "Card",
        "--link-speed",
        "25GbE",
        "--ports",
        "1",
    ),
    *("--title", "Example 25G, zero loss", "--device", "Example 25G", "--source", "Example Lab", "--year", "2026"),
)


def main(pictures: Path) -> None:
    """Makes every picture in the folder."""
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "results.csv").write_text(_TABLE)
        draw(record(folder), pictures / "run.svg")
        call(folder, "run", str(ROOT / "docs/site/pictures.yaml"), "--no-progress")
        report = next(folder.glob("runs/*-a-simulated-device*/report.html"))
        photograph(report, pictures / "report.png", _DESKTOP)
        photograph(report, pictures / "report-phone.png", _PHONE)
        views = (("runs", "/", "tbody tr"), ("run", f"/runs/{report.parent.name}", "canvas"))
        photograph_pages(folder / "runs", views, pictures)
        photograph_history(folder / "history", pictures)
        call(folder, *_IMPORT)
        call(folder, "report", "latest", "--layout", "datasheet")
        photograph(next(folder.glob("runs/*/report-datasheet.html")), pictures / "datasheet.png", _SHEET)


def call(folder: Path, *command: str) -> None:
    """Runs a command of nicbench in the folder; CalledProcessError where it fails."""
    subprocess.run([NICBENCH, *command], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def record(folder: Path) -> list[tuple[float, str]]:
    """Runs the command that is recorded; returns each line that it printed, with its time in seconds."""
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [NICBENCH, *COMMAND], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    began = time.monotonic()
    lines = [(time.monotonic() - began, line.rstrip("\n").replace(f"{folder}/", "")) for line in process.stdout or ()]
    if process.wait() != 0:
        raise SystemExit(f"pictures: the run failed:\n{''.join(line for _, line in lines)}")
    return lines


def draw(lines: list[tuple[float, str]], picture: Path) -> None:
    """Draws a recording as an SVG whose lines appear in time; all at once for readers who want no motion."""
    lines = [(0.0, f"$ nicbench {' '.join(COMMAND)}"), *lines]
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, highlight=False)
        for number, (_, line) in enumerate(lines):
            console.print(Text(line, style="bold" if number == 0 else ""), no_wrap=True, crop=True)
        svg = console.export_svg(title="nicbench", unique_id="run")
    rules = "".join(
        f".run-at-{number} {{ animation: run-appear 0s {at:.2f}s both }}\n" for number, (at, _) in enumerate(lines)
    )
    motion = (
        "@keyframes run-appear { from { visibility: hidden } to { visibility: visible } }\n"
        f"@media (prefers-reduced-motion: no-preference) {{\n{rules}}}\n"
    )
    svg = svg.replace("</style>", f"{motion}</style>", 1)
    # Fonts come from the reader's machine: the site loads nothing from elsewhere.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'<text class="([^"]*)"([^>]*clip-path="url\(#run-line-(\d+)\)")', r'<text class="\1 run-at-\3"\2', svg
    )
    picture.write_text(svg)


def find_browser() -> str:
    """Returns the path of Chromium; SystemExit where there is none."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("pictures: there is no Chromium\n  next: apt-get install chromium")
    return browser


def photograph(page: Path, picture: Path, size: tuple[int, int]) -> None:
    """Takes a picture of the first screen of a page, in a window of so many pixels."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1"]
    window = f"--window-size={size[0]},{size[1]}"
    shot = [find_browser(), *options, window, f"--screenshot={picture.resolve()}", page.as_uri()]
    subprocess.run(shot, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def photograph_history(runs: Path, pictures: Path) -> None:
    """Takes pictures of what is seen of many runs: those of an invented laboratory over two years."""
    sys.path.insert(0, str(ROOT))
    from tests.web._history import make_history  # imported here: it is there where tests are

    make_history(runs)
    trends = "/trends?test=throughput&value=ndr_frames_per_s&p.frame_bytes=64&card=25G"
    explore = "/explore?test=latency&value=latency_p99_ns&x=kernel&p.load_percent=50"
    photograph_pages(
        runs,
        (("trends", trends, ".changes tbody tr"), ("explore", explore, "canvas")),
        pictures,
    )


def photograph_pages(runs: Path, views: Sequence[tuple[str, str, str]], pictures: Path) -> None:
    """Takes pictures of pages in the browser, on a desktop, in the dark and on a phone.

    ``views`` are a name, an address, and what is there once it is drawn.
    """
    from playwright.sync_api import sync_playwright  # imported here: it is there where tests are

    looks: dict[str, dict[str, Any]] = {
        "": {"viewport": {"width": _DESKTOP[0], "height": _DESKTOP[1]}},
        "-dark": {"viewport": {"width": _DESKTOP[0], "height": _DESKTOP[1]}, "color_scheme": "dark"},
        "-phone": {"viewport": {"width": 390, "height": 844}},
    }
    server = subprocess.Popen([NICBENCH, "web", str(runs), "--port", "0"], text=True, stderr=subprocess.PIPE)
    try:
        said = server.stderr.readline() if server.stderr is not None else ""
        address = said.split()[-1].rstrip("/")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
            for look, options in looks.items():
                for name, path, drawn in views:
                    page = browser.new_page(**options)
                    page.goto(address + path)
                    page.wait_for_selector(drawn, timeout=120_000)
                    page.wait_for_timeout(500)  # until the last piece of the journal is drawn
                    whole = name == "trends" and look != "-phone"  # its table of changes stands below the chart
                    page.screenshot(path=pictures / f"web-{name}{look}.png", full_page=whole)
                    if name == "run":
                        photograph_heat(page, pictures / f"web-heat{look}.png")
                    page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait()


def photograph_heat(page: Page, picture: Path) -> None:
    """Takes a picture of the heat map of a run's page, with what it says of a cell."""
    heat = page.locator("figure", has=page.get_by_text("Latency over time", exact=True))
    box = heat.locator(".u-over").bounding_box()
    if box is not None:
        heat.locator(".u-over").hover(position={"x": 0.9 * box["width"], "y": 0.9 * box["height"]})
    heat.screenshot(path=picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
