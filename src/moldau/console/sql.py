"""Runs of SQL: each is a process of `moldau sql`, so that Spark cannot disturb the console.

A run belongs to one page: it begins when the page reads its results, and ends with its statements, when the
page is closed, or after `_MAX_S`. The connection's secrets are in a file that only this user can read,
never in arguments. Statements that read files or call Java on this machine are refused: who uses the console
is not who runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from moldau.client.wire.settings import ClientSettings
from moldau.console.web.call import Refused
from moldau.console.web.forms import InvalidField

_MAX_WAITING: Final = 20
_MAX_RUNNING: Final = 2
_MAX_S: Final = 600.0
_MAX_ROWS: Final = 2000
_MAX_LINE: Final = 1 << 20
_STOP_S: Final = 5.0
_QUIET_S: Final = 5.0


_STATEMENTS: Final = "statements.sql"
_REGISTRY: Final = "schema.registry.url"
#: Text up to its quote, or to the end if it has none.
_LITERAL: Final = re.compile(r"'(?:[^']|'')*(?:'|$)")
#: What may follow RUN are the word SCRIPT or a comment before it; the others are functions and a property.
_FORBIDDEN: Final = re.compile(
    r"""(?P<script>\brun\b["'`]?\s*["'`]?(?:script\b|--|/\*|//|\#))|\b(?P<word>avro_schema_file|java_method|(?:try_)?reflect)\b""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Run:
    statements: str
    settings: ClientSettings
    registry_url: str | None = None

    @property
    def script(self) -> str:
        """The script that runs the statements of the user, whose errors name lines of a file of their own."""
        if self.registry_url is None:
            return f"RUN SCRIPT '{_STATEMENTS}';"
        quoted = self.registry_url.replace("'", "''")
        return f"SET '{_REGISTRY}' = '{quoted}'; RUN SCRIPT '{_STATEMENTS}';"


def without_literals(text: str) -> str:
    """Return statements without the contents of text in single quotes."""
    return _LITERAL.sub("'…'", text)


def check_statements(text: str) -> None:
    """Refuse statements that reach beyond the cluster; `InvalidField` says which."""
    found = _FORBIDDEN.search(text)
    if found is not None:
        what = "RUN SCRIPT" if found["script"] else found["word"]
        raise InvalidField(
            f"{what} is not possible in the console: it reads files or calls Java on the console's machine."
        )


class Output(NamedTuple):
    """`row`: a row of a result; `message`: a line for the user; `waiting`: nothing for some seconds."""

    kind: str
    value: Any = None


class SqlRuns:
    def __init__(self) -> None:
        self._waiting: dict[str, Run] = {}
        self._running: set[asyncio.subprocess.Process] = set()
        self._used = 0

    def add(self, run: Run) -> str:
        """Keep a run until its results are read; return its id."""
        while len(self._waiting) >= _MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        id = secrets.token_urlsafe(12)
        self._waiting[id] = run
        return id

    def take(self, id: str) -> Run | None:
        return self._waiting.pop(id, None)

    async def results(self, run: Run) -> AsyncIterator[Output]:
        """Run the statements and yield what they print; the last output is `end` with the exit code."""
        if self._used >= _MAX_RUNNING:
            raise Refused(503, f"{_MAX_RUNNING} statements are running; try again later.")
        # Before the process is started, which takes a while.
        self._used += 1
        try:
            with tempfile.TemporaryDirectory(prefix="moldau-sql-") as folder:
                process = await _started(run, Path(folder))
                self._running.add(process)
                try:
                    async for output in _outputs(process):
                        if output != Output("message", f"{_REGISTRY} is {run.registry_url}."):
                            yield output
                finally:
                    self._running.discard(process)
                    await _stopped(process)
        finally:
            self._used -= 1

    async def close(self) -> None:
        for process in list(self._running):
            await _stopped(process)


async def _started(run: Run, folder: Path) -> asyncio.subprocess.Process:
    settings = run.settings
    (folder / _STATEMENTS).write_text(run.statements, "utf-8", "replace")
    script = folder / "script.sql"
    script.write_text(run.script)
    servers = ",".join(map(str, settings.bootstrap))
    command = [sys.executable, "-m", "moldau", "sql", "--bootstrap-server", servers, "--output", "json"]
    command += ["--file", str(script)]
    if settings.security.protocol != "PLAINTEXT":
        properties = {**dict(settings.security.properties), "security.protocol": settings.security.protocol}
        file = folder / "client.properties"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as written:
            written.writelines(f"{name}={_escaped(value)}\n" for name, value in properties.items())
        command += ["--command-config", str(file)]
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MAX_LINE,
        start_new_session=True,
        cwd=folder,
    )


async def _outputs(process: asyncio.subprocess.Process) -> AsyncIterator[Output]:
    queue: asyncio.Queue[Output | None] = asyncio.Queue(maxsize=1000)
    loop = asyncio.get_running_loop()
    end = loop.time() + _MAX_S
    readers = [
        asyncio.create_task(_read(stream, kind, queue))
        for stream, kind in ((process.stdout, "row"), (process.stderr, "message"))
        if stream is not None
    ]
    open_streams, rows = len(readers), 0
    try:
        while open_streams:
            try:
                output = await asyncio.wait_for(queue.get(), _QUIET_S)
            except TimeoutError:
                if loop.time() > end:
                    yield Output("message", f"The statements are stopped after {_MAX_S:.0f} seconds.")
                    return
                yield Output("waiting")
                continue
            if output is None:
                open_streams -= 1
                continue
            rows += output.kind == "row"
            if rows > _MAX_ROWS:
                yield Output("message", f"Only the first {_MAX_ROWS} rows are shown.")
                return
            yield output
        yield Output("end", await process.wait())
    finally:
        for reader in readers:
            reader.cancel()


async def _read(stream: asyncio.StreamReader, kind: str, queue: asyncio.Queue[Output | None]) -> None:
    try:
        while line := await stream.readline():
            text = line.decode("utf-8", "replace").rstrip("\n")
            if kind == "row":
                try:
                    await queue.put(Output(kind, json.loads(text)))
                    continue
                except ValueError:
                    pass
            if text:
                await queue.put(Output("message", text))
    except ValueError:
        await queue.put(Output("message", "A row is too long to be shown."))
    finally:
        await queue.put(None)


async def _stopped(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
