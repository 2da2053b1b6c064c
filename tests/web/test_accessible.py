"""The pages under axe, light, dark and as wide as a phone: nothing is found, and nothing is wider than the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.web._browser import chromium, needs_browser, open_page, served
from tests.web._folders import begun, make_run, note, started, trials
from tests.web._history import make_history

AXE = Path(__file__).resolve().parents[2] / "build/pages/node_modules/axe-core/axe.min.js"
PAGES = {
    "/": ".scroll tbody tr",
    "/?columns=run,title,tags,trials&sort=-title": ".scroll tbody tr",
    "/runs/one": ".scroll tbody tr",
    "/trends?test=throughput": ".changes tbody tr",
    "/explore?test=throughput&xlog=1": "canvas",
    "/nowhere": "h1",
}
"""The pages, and what is there once they are drawn."""
LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}},
}


@needs_browser
@pytest.mark.slow
@pytest.mark.acceptance
@pytest.mark.skipif(not AXE.is_file(), reason="axe is not here: scripts/check-pages fetches it")
async def test_axe_finds_nothing_in_any_view(runs: Path) -> None:
    make_run(
        runs, "one", started("One") + begun() + trials(30) + note("a warning") + trials(1, first=31, note="held up")
    )
    make_run(runs, "two", started("Another") + trials(2))
    make_history(runs, 68, first=52)
    async with chromium() as browser:
        with served(runs) as (address, _):
            for look, options in LOOKS.items():
                for path, shown in PAGES.items():
                    page, wrong = await open_page(browser, address + path, **options)
                    await expect(page.locator(shown).first).to_be_visible()
                    await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
                    await page.evaluate(AXE.read_text())
                    found = await page.evaluate("axe.run().then((done) => done.violations.map((each) => each.help))")
                    assert (look, path, found, wrong) == (look, path, [], [])
                    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
                    await page.close()
