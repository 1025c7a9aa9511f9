"""Load from wrk, an HTTP client in C whose cost does not show beside that of the service."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 8
_MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True, slots=True)
class Requests:
    """What is sent. In path and body, `%d` is the number of the request.

    Numbers begin after `first`, or run from 1 to `numbers` repeatedly.
    """

    path: str
    method: str = "GET"
    body: str = ""
    headers: Mapping[str, str] | None = None
    numbers: int | None = None

    def script(self, first: int) -> str:
        """Return the Lua script that sends the requests."""
        headers = "".join(
            f"wrk.headers[{_lua(name)}] = {_lua(value)}\n" for name, value in (self.headers or {}).items()
        )
        return (
            f"local number = {first}\n"
            f"local path, body = {_lua(self.path)}, {_lua(self.body)}\n"
            f"{headers}"
            "function request()\n"
            f"  number = number{f' % {self.numbers}' if self.numbers else ''} + 1\n"
            "  local numbered, text = path:gsub('%%d', number), body:gsub('%%d', number)\n"
            f"  return wrk.format({_lua(self.method)}, numbered, nil, text)\n"
            "end\n"
        )


@dataclass(frozen=True, slots=True)
class Load:
    per_second: float
    count: int
    p50_ms: float
    p99_ms: float


def require_wrk() -> None:
    if shutil.which("wrk") is None:
        sys.exit("The load comes from wrk, which is not installed; on Debian or Ubuntu: apt-get install wrk")


def run(url: str, requests: Requests, seconds: int, connections: int = CONNECTIONS, first: int = 0) -> Load:
    """Send requests for some seconds; every response must have a status below 300."""
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        script = Path(folder) / "requests.lua"
        script.write_text(requests.script(first))
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
        done = subprocess.run(["wrk", *options, url], capture_output=True, text=True, check=True)
    return _parsed(done.stdout)


def _parsed(text: str) -> Load:
    if "Non-2xx" in text or "Socket errors" in text:
        sys.exit(f"requests failed:\n{text}")
    count = re.search(r"(\d+) requests in", text)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    if count is None or rate is None:
        sys.exit(f"wrk printed no figures:\n{text}")
    return Load(float(rate[1]), int(count[1]), _percentile(text, 50), _percentile(text, 99))


def _percentile(text: str, percent: int) -> float:
    found = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s)", text)
    return float(found[1]) * _MILLISECONDS[found[2]] if found else 0.0


def _lua(text: str) -> str:
    """Return a Lua string; JSON's escapes are a subset of Lua's for these texts."""
    return json.dumps(text)
