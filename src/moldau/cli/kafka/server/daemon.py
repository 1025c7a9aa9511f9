"""`kafka-server-start -daemon`: run a node in the background.

The command returns when the node is ready or has failed, so the next line of a script finds it running.
(Apache Kafka's command returns at once; scripts written for it have less to wait for.) A node that may have
to wait for other nodes is awaited only briefly, because the next line of the script may start them.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from moldau.cli.shared.tool import ToolError, warn

_OUTPUT = "kafkaServer.out"


def start_in_background(run: Callable[[Callable[[], None]], int], timeout_s: float | None) -> int:
    """Call `run` in a new process, with a function that it calls once the node is ready.

    Wait for that at most `timeout_s`, or without a limit if it is None.
    """
    folder = Path(os.environ.get("LOG_DIR") or "logs").absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        output = os.open(folder / _OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise ToolError(f"Cannot write {folder / _OUTPUT}: {error.strerror}; set LOG_DIR.") from error
    reading, writing = os.pipe()
    if not os.fork():
        os.close(reading)
        _become_daemon(output, writing, run)
    os.close(output)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        if not select.select([answer], [], [], timeout_s)[0] or answer.read(1):
            return 0
    raise ToolError(f"{_last_line(folder / _OUTPUT)}\nThe server did not start; see {folder / _OUTPUT}")


def _become_daemon(output: int, ready: int, run: Callable[[Callable[[], None]], int]) -> NoReturn:
    def report() -> None:
        # The command may have stopped waiting.
        with contextlib.suppress(BrokenPipeError):
            os.write(ready, b"+")
        os.close(ready)

    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        code = run(report)
    except ToolError as error:
        warn(str(error))
    finally:
        # Never return into the code of the command that was forked: this process is the node.
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)


def _last_line(file: Path) -> str:
    lines = file.read_text(errors="replace").splitlines()
    return lines[-1] if lines else ""
