"""Running a tool: its command line, its exit code, and how its failures are reported.

A tool is a parser and a function. Its exit code is 0, or 1 after a message that names the problem and, where
known, the remedy; a failure never prints a traceback. Ctrl-C and a closed pipe end a tool silently.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.shared.arguments import ToolParser, UsageError

R = TypeVar("R")

INTERRUPTED = 130


class ToolError(Exception):
    """The tool cannot do what was requested; the message is printed to the user."""


def run_tool(
    parser: Callable[[], ToolParser],
    execute: Callable[[argparse.Namespace], int | None],
    argv: Sequence[str] | None,
    *,
    report: Callable[[str], None] | None = None,
) -> int:
    """Run a tool and return its exit code. `report` prints the message of a failure, by default to stderr."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run(parser(), execute, arguments, report or _print_failure)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return 0


def _run(
    parser: ToolParser,
    execute: Callable[[argparse.Namespace], int | None],
    arguments: Sequence[str],
    report: Callable[[str], None],
) -> int:
    if not arguments:
        sys.stderr.write(parser.format_help())
        return 1
    try:
        code = execute(parser.parse(arguments)) or 0
        sys.stdout.flush()
        return code
    except UsageError as error:
        _print_failure(f"{error}\nTry '{parser.prog} --help'.")
    except SystemExit as done:
        return int(done.code or 0)
    except ToolError as error:
        report(str(error))
    except KafkaError as error:
        report(explain(error))
    return 1


def explain(error: KafkaError) -> str:
    """Return the message of an error, followed by a remedy where one is known."""
    from moldau.client.wire.cluster import BootstrapFailed
    from moldau.network.failures import ConnectionLost, NodeUnreachable, PermanentFailure

    text = str(error)
    if isinstance(error, BootstrapFailed):
        address = error.failures[0][0]
        hint = "Is a broker running there?" if error.passing else "Is the address correct?"
        return f"{text}\n{hint} `moldau doctor --bootstrap-server {address}` finds the reason."
    if isinstance(error, NodeUnreachable):
        return (
            f"{text}\nThe bootstrap server was reached, but this is the address that the broker advertises "
            "(advertised.listeners): `moldau doctor` says more."
        )
    if isinstance(error, PermanentFailure):
        command = f"moldau doctor --bootstrap-server {error.host}:{error.port} --command-config FILE"
        return f"{text}\n`{command}` says more."
    if isinstance(error, ConnectionLost) and error.unanswered:
        return f"{text}\nSet it with --command-config FILE; `moldau doctor` says which one the listener has."
    if error.code is ErrorCode.UNSUPPORTED_VERSION:
        return f"{text}\nThe broker does not support this; `kafka-broker-api-versions` shows what it does."
    return text


def warn(message: str) -> None:
    """Print a message to standard error."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def print_error(message: str) -> None:
    """Print an error to standard output, where Kafka's group tools print those that do not end them."""
    print(f"\nError: {message}")


def attempt(what: str, call: Callable[[], R]) -> R:
    """Call the cluster; the message of a failure begins with `what`."""
    from moldau.client.wire.cluster import BootstrapFailed

    try:
        return call()
    except BootstrapFailed:
        raise
    except KafkaError as error:
        raise ToolError(f"{what}: {error.message or error}") from error


def _print_failure(message: str) -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    warn(message)


def _discard_output() -> None:
    """Redirect standard output to /dev/null, so that the interpreter's flush at exit does not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C within the block, so that clients are closed and totals are printed."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
