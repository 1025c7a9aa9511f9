"""`kafka-server-start -daemon`: the node goes on in the background.

The command itself ends when the node is ready or has said why it cannot be, so that a script may go on with
the next line. Apache's returns at once; a script written for it only waits less afterwards. A node that may
have to wait for others is given only a moment, because the next line may be the one that starts them.
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


def start_in_background(run: Callable[[Callable[[], None]], int], patience_s: float | None) -> int:
    """`run` is called in a process of its own, with a function to call once the node is ready; it is awaited
    for so long, or for as long as it takes."""
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
        if not select.select([answer], [], [], patience_s)[0] or answer.read(1):
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
        # Never back into the command that was forked: this is the node's process now.
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)


def _last_line(file: Path) -> str:
    lines = file.read_text(errors="replace").splitlines()
    return lines[-1] if lines else ""
