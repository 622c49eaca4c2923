"""A browser, and the page in it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.web.clinic_server import TEXT, Clinic

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture
def server() -> Iterator[Any]:
    """The made-up server; what was asked is in `server.seen`, and stored feedback in
    `server.feedback`.
    """
    with ThreadingHTTPServer(("127.0.0.1", 0), Clinic) as made:
        made.seen, made.feedback, made.token, made.error, made.models = (
            [],
            [],
            None,
            None,
            ["clinic"],
        )  # type: ignore[attr-defined]
        threading.Thread(
            target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        yield made
        made.shutdown()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[test]'"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, server: Any) -> Iterator[Any]:
    """Open the page: `open_page(width=…, dark=True)`. It ends without a console error, refused
    or remote request.
    """
    problems, contexts = [], []

    def open_at(
        width: int = 1200,
        *,
        folder: str = "/",
        dark: bool = False,
        ready: bool = True,
        **context: Any,
    ) -> Any:
        options = {
            "viewport": {"width": width, "height": 860},
            "color_scheme": "dark" if dark else "light",
            "reduced_motion": "reduce",
            **context,
        }
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        home = f"http://127.0.0.1:{server.server_address[1]}"
        page.on(
            "console",
            lambda line: problems.append(line.text) if line.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda sent: (
                None if sent.url.startswith((home, f"blob:{home}")) else problems.append(sent.url)
            ),
        )
        page.goto(home + folder)
        if ready:
            page.get_by_text("6 labels from").wait_for()
        return page

    open_at.problems = problems  # type: ignore[attr-defined]
    yield open_at
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def suggested(open_page: Any) -> Any:
    """The page with labels for `TEXT`, all explained."""

    def suggest(*args: Any, text: str = TEXT, file: Path | None = None, **options: Any) -> Any:
        page = open_page(*args, **options)
        if file:
            page.locator("#file").set_input_files(file)
            page.locator("#size:not(:text-is('0 characters'))").wait_for()
        else:
            page.locator("#editor").fill(text)
        page.keyboard.press("Control+Enter")
        page.locator(".row").first.wait_for()
        page.locator(".row:not(:has(.why table))").first.wait_for(state="detached")
        return page

    return suggest
