"""Where a login continues: only paths of the console's own pages."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from moldau.console.login.redirects import login_path, requested_page, safe_path


@pytest.mark.parametrize(
    "path", ["/", "/topics", "/topics?q=a%20b&page=2", "/groups/a%2Fb", "/clusters/b/acls"]
)
def test_own_pages_are_kept(path: str) -> None:
    assert safe_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "topics",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "/\n//evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/a b",
        "/login?next=/login",
        "/login/callback?code=x",
        "/logout",
        "/static/console.js",
        "/clusters/b/events",
        "/" + "x" * 3000,
    ],
)
def test_everything_else_is_the_start_page(path: str) -> None:
    assert safe_path(path) == "/"


def request(method: str, path: str, query: str = "", **headers: str) -> Request:
    found = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request(
        {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": found,
        }
    )


def test_the_page_is_that_of_the_request_or_that_which_updates_itself() -> None:
    assert requested_page(request("GET", "/topics", "q=x")) == "/topics?q=x"
    assert requested_page(request("POST", "/topics")) == "/"
    current = "https://console.example/groups?q=%2F#part"
    assert requested_page(request("GET", "/x", hx_current_url=current)) == "/groups?q=%2F"
    assert requested_page(request("GET", "/x", hx_current_url="https://x//evil.example")) == "/"


def test_the_path_of_the_login_names_page_and_cluster() -> None:
    assert login_path("/") == "/login"
    assert login_path("/topics?q=a&b") == "/login?next=%2Ftopics%3Fq%3Da%26b"
    assert login_path("/", "other") == "/login?cluster=other"
