"""Debian's Chromium under Playwright, for the stories of the web console."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb"]
#: Milliseconds in which a page must show what a story expects.
PATIENCE_MS = 20_000


def chromium_path() -> str:
    """Return the browser; skip the test with a sentence if the machine has none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = os.environ.get("CHROMIUM") or shutil.which(name)
        if found:
            return found
    pytest.skip(
        "the web console is tested in Chromium, which is not installed (Debian: apt-get install chromium)"
    )


@contextmanager
def launched_browser() -> Iterator[Any]:
    """A browser for a module; each story has a context of its own."""
    path = chromium_path()
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the web console is tested with the package playwright"
    )
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_page(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """A page of a new context; an error in its scripts fails the story."""
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800}, **options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda line: problems.append(line.text) if "Content Security Policy" in line.text else None,
    )
    try:
        yield page
    finally:
        context.close()
    assert problems == []


def violations(page: Any) -> list[tuple[str, str]]:
    """Return the serious violations of accessibility that axe-core finds, and an element of each."""
    from axe_playwright_python.base import AXE_SCRIPT

    session = page.context.new_cdp_session(page)
    try:
        # Through the protocol, which the content security policy does not concern.
        session.send("Runtime.evaluate", {"expression": AXE_SCRIPT})
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    finally:
        session.detach()
    return [
        (each["id"], each["nodes"][0]["html"][:200])
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def violations_of_dialogs(page: Any) -> dict[str, list[tuple[str, str]]]:
    """Open the dialogs of a page one after the other; return the serious violations of each."""
    found = {}
    openers = page.locator("[data-dialog]:visible")
    names = dict.fromkeys(openers.evaluate_all("all => all.map(each => each.dataset.dialog)"))
    for name in names:
        page.locator(f"[data-dialog='{name}']:visible").first.click()
        page.locator(f"dialog#{name}[open]").wait_for()
        found[name] = violations(page)
        page.keyboard.press("Escape")
        page.locator(f"dialog#{name}[open]").wait_for(state="hidden")
    return {name: each for name, each in found.items() if each}
