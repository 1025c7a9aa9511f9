"""A console for the shared node, and a browser for each module of stories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.browser import launched_browser, opened_page
from tests.harness.rest_proxy import Api, service


@pytest.fixture(scope="module")
def console(bootstrap: str) -> Iterator[Api]:
    with service("console", bootstrap) as (port, _):
        yield Api(port, {"Accept": "application/json"})


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched_browser() as running:
        yield running


@pytest.fixture
def page(browser: Any, console: Api) -> Iterator[Any]:
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        yield page
