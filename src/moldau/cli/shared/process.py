"""Options and supervision of commands that run a server: log format, `property=value` words, stopping."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence

from moldau.base.json_log import FORMATS, TEXT
from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.tool import ToolError

#: Passed to a server by the process that supervises it; see `start_stop_watcher`.
STOP_WITH_INPUT = "--stop-with-input"


def add_process_options(parser: ToolParser) -> None:
    """Add the log format, and the option of supervised processes."""
    add_log_format(parser)
    parser.add_argument(STOP_WITH_INPUT, action="store_true", help=argparse.SUPPRESS)


def add_log_format(parser: ToolParser) -> None:
    parser.option(
        "--log-format",
        "FORMAT",
        "Log as text, or as lines of JSON with the fields of each event (json).",
        choices=FORMATS,
        default=TEXT,
    )


def checked_format(log_format: str) -> str:
    """Return the log format of a command that is not parsed by `ToolParser`."""
    if log_format not in FORMATS:
        raise ToolError(f"--log-format is {' or '.join(FORMATS)}, not {log_format}.")
    return log_format


def overrides(words: Sequence[str]) -> dict[str, str]:
    """Parse `property=value` words; the value may be empty and may contain `=`."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"'{word}' is not of the form property=value")
        found[name.strip()] = value.strip()
    return found


def start_stop_watcher(options: argparse.Namespace) -> None:
    """Shut a supervised process down when its standard input is closed: its supervisor has exited."""
    if options.stop_with_input:
        threading.Thread(target=_stop_at_end_of_input, daemon=True).start()


def _stop_at_end_of_input() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
