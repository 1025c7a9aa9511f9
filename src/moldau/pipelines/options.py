"""Checks of option names and values that source and sink share.

An unknown name is ignored, as Spark does, unless it is similar to a known one: then it is probably a typing
error, which would otherwise go unnoticed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


class InvalidOption(ValueError):
    """An option with an invalid name or value."""


def check_names(options: Mapping[str, str], known: Iterable[str]) -> None:
    """Check the names of `options`, which are in lower case."""
    by_lower = {name.lower(): name for name in known}
    for name in options:
        if name in by_lower or name.startswith("kafka."):
            continue
        if similar := difflib.get_close_matches(name, by_lower, n=1, cutoff=0.85):
            raise InvalidOption(f"Unknown option {name!r}. Did you mean {by_lower[similar[0]]!r}?")
    if not options.get("kafka.bootstrap.servers", "").strip():
        raise InvalidOption("The option 'kafka.bootstrap.servers' is required: host:port of the cluster.")


def client_properties(options: Mapping[str, str], refused: Mapping[str, str]) -> dict[str, str]:
    """Return the options that begin with `kafka.` by their Kafka names; `refused` says what to use
    instead."""
    properties = {
        name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")
    }
    for name, instead in refused.items():
        if name in properties:
            raise InvalidOption(f"The option 'kafka.{name}' is not supported: {instead}.")
    return properties


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise InvalidOption(f"The option '{name}' must be true or false, not {text!r}.")
    return text == "true"
