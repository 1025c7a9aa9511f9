"""People who browse: each has a page open, which fetches itself with every announced change, as htmx does."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_TIMEOUT_S = 60.0
#: Announcements after which a viewer goes to another page.
_STAY = 3


def get(port: int, path: str, accept: str = "text/html") -> float:
    """Request a page on a new connection, and return the seconds until its last byte."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    begin = time.perf_counter()
    try:
        connection.request("GET", path, headers={"Accept": accept})
        response = connection.getresponse()
        body = response.read()
        if response.status >= 300:
            raise SystemExit(f"GET {path} was answered with {response.status}: {body[:200]!r}")
    finally:
        connection.close()
    return time.perf_counter() - begin


@contextmanager
def browsing(port: int, paths: Sequence[str], viewers: int) -> Iterator[list[float]]:
    """Let viewers browse; yield the list to which the seconds of their pages are added."""
    ended = threading.Event()
    seconds: list[float] = []
    threads = [
        threading.Thread(target=_view, args=(port, paths, number, ended, seconds), daemon=True)
        for number in range(viewers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield seconds
    finally:
        ended.set()
        for thread in threads:
            thread.join(_TIMEOUT_S)


def _view(port: int, paths: Sequence[str], number: int, ended: threading.Event, seconds: list[float]) -> None:
    announced = 0
    for name, _ in events(port, "/events"):
        if ended.is_set():
            return
        if name == "snapshot":
            page = paths[(number + announced // _STAY) % len(paths)]
            announced += 1
            seconds.append(get(port, page))


def events(port: int, path: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the server-sent events of a path; an empty name for a comment that keeps the connection open."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        if response.status != 200:
            raise SystemExit(f"GET {path} was answered with {response.status}.")
        name = ""
        while line := response.readline().decode():
            if line.startswith("event: "):
                name = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))
                name = ""
            elif line.startswith(":"):
                yield "", {}
    finally:
        connection.close()
