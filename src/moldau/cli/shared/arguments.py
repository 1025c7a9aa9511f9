"""Command-line parsing in the style of Kafka's tools: long options, no abbreviations, Kafka's error messages.

`--help` prints to standard output and succeeds. An invalid command line is reported in one sentence with a
hint, without the whole help text.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

import moldau
from moldau.base.ids import INTERNAL_TOPICS
from moldau.cli.tools import TOOLS

#: The Apache Kafka release whose tools these follow.
KAFKA_VERSION = "4.3.0"


class UsageError(Exception):
    """The command line is invalid; the message gives the reason."""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the help of options at the width of the terminal, and keeps explicit line breaks."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap

        return [part for line in text.splitlines() for part in wrap(line, width, break_on_hyphens=False)]


class ToolParser(argparse.ArgumentParser):
    """The parser of a tool or of one of its subcommands.

    A tool is described by its summary in `TOOLS`, a subcommand by `description`. `notes` returns text to
    print below the options; it is called only when help is requested.
    """

    def __init__(
        self, prog: str, description: str | None = None, notes: Callable[[], str] | None = None
    ) -> None:
        super().__init__(
            prog=prog,
            description=TOOLS[prog].summary if description is None else description,
            allow_abbrev=False,
            add_help=False,
            formatter_class=_HelpFormatter,
        )
        self._notes = notes
        self.add_argument("--help", "-h", action="help", help="Show this help and exit.")
        version = f"{KAFKA_VERSION} (Moldau {moldau.__version__})"
        self.add_argument("--version", action="version", version=version, help="Show the version and exit.")

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse a command line. Raise `UsageError` if it is invalid, `SystemExit` after help and version."""
        options, unknown = self.parse_known_args(list(argv))
        if unknown:
            raise UsageError(self._unrecognized(unknown[0]))
        return options

    def flag(self, name: str, help: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=help)

    def option(self, name: str, metavar: str, help: str, **more: object) -> None:
        """Add an option with a value."""
        self.add_argument(name, metavar=metavar, help=help, **more)  # type: ignore[arg-type]

    def hidden(self, name: str, **more: object) -> None:
        """Add an option of older Kafka releases, which is accepted but not listed in the help."""
        self.add_argument(name, help=argparse.SUPPRESS, **more)  # type: ignore[arg-type]

    def format_help(self) -> str:
        text = super().format_help()
        return f"{text}\n{self._notes()}\n" if self._notes else text

    def error(self, message: str) -> NoReturn:
        match = re.match(r"argument (\S+?)(?:/\S+)?: (.*)", message)
        if match is None:
            raise UsageError(message)
        name, problem = match[1].lstrip("-"), match[2]
        if problem.startswith("expected"):
            raise UsageError(f"Option {name} requires an argument")
        value = re.search(r": '(.*)'$", problem)
        if problem.startswith("invalid") and value is not None:
            raise UsageError(f"Cannot parse argument '{value[1]}' of option {name}")
        raise UsageError(f"Option {name}: {problem}")

    def _unrecognized(self, argument: str) -> str:
        name = argument.split("=")[0]
        if not name.startswith("-"):
            return f"{argument} is not an option: options begin with --"
        from difflib import get_close_matches

        near = get_close_matches(name, self._option_string_actions)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"{name.lstrip('-')} is not a recognized option{hint}"


def given(options: argparse.Namespace, name: str) -> bool:
    """Return whether an option, named without its leading dashes, is on the command line."""
    value = getattr(options, name.replace("-", "_"))
    return value is not None and value is not False and value != []


def require(options: argparse.Namespace, *names: str) -> None:
    for name in names:
        if not given(options, name):
            raise UsageError(f'Missing required argument "[{name}]"')


def refuse_together(options: argparse.Namespace, used: str, invalid: Iterable[str]) -> None:
    if not given(options, used):
        return
    for name in invalid:
        if given(options, name):
            raise UsageError(f'Option "[{used}]" can\'t be used with option "[{name}]"')


def require_one(options: argparse.Namespace, *names: str) -> None:
    if sum(given(options, name) for name in names) != 1:
        listed = ", ".join(f"[{name}]" for name in names)
        raise UsageError(f"Exactly one of the following arguments is required: {listed}")


def key_values(items: Iterable[str]) -> dict[str, str]:
    """Parse `key=value` pairs; a missing value is the empty string."""
    return {key: value for key, _, value in (item.partition("=") for item in items)}


class TopicPattern:
    """A regular expression that must match a whole topic name; a comma separates alternatives."""

    def __init__(self, text: str) -> None:
        cleaned = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            self._pattern = re.compile(cleaned)
        except re.error as error:
            raise UsageError(f"{text} is an invalid regex: {error}") from error

    def allows(self, topic: str, *, exclude_internal: bool = False) -> bool:
        if exclude_internal and topic in INTERNAL_TOPICS:
            return False
        return self._pattern.fullmatch(topic) is not None
