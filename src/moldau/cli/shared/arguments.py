"""Command lines as Kafka's tools read them: long options, no abbreviations, Kafka's sentences for mistakes.

`--help` goes to standard output and is no error; a mistake is one sentence and a hint, not the whole help.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

import moldau

#: The release of Apache Kafka whose tools these follow.
KAFKA_VERSION = "4.3.0"


class UsageError(Exception):
    """The command line makes no sense; the sentence says why."""


class ToolParser(argparse.ArgumentParser):
    """`notes` adds text below the options; it is made only when help is asked for."""

    def __init__(self, prog: str, description: str, notes: Callable[[], str] | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            add_help=False,
            formatter_class=argparse.RawTextHelpFormatter,
        )
        self._notes = notes
        self.add_argument("--help", "-h", action="help", help="Show this text.")
        version = f"{KAFKA_VERSION} (Moldau {moldau.__version__})"
        self.add_argument("--version", action="version", version=version, help="Show the version.")

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Read the command line; `UsageError` for a mistake, `SystemExit` after help and version."""
        options, unknown = self.parse_known_args(list(argv))
        if unknown:
            raise UsageError(self._unrecognized(unknown[0]))
        return options

    def flag(self, name: str, help: str) -> None:
        """An option that is there or not."""
        self.add_argument(name, action="store_true", help=help)

    def option(self, name: str, metavar: str, help: str, **more: object) -> None:
        """An option with a value."""
        self.add_argument(name, metavar=metavar, help=help, **more)  # type: ignore[arg-type]

    def hidden(self, name: str, **more: object) -> None:
        """An option of old tutorials: accepted, not advertised."""
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
    """Whether an option, by its name without dashes in front, is on the command line."""
    value = getattr(options, _attribute(name))
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
    """`key=value` pairs; a missing value is the empty string."""
    return {key: value for key, _, value in (item.partition("=") for item in items)}


def _attribute(name: str) -> str:
    return name.replace("-", "_")
