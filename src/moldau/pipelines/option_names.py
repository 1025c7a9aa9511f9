"""The names of options and the words that they take, which source and sink check alike.

A name that is not known is ignored, as Spark does, unless it looks like one that is: then it is a mistake
that would pass unnoticed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from moldau.pipelines.source.errors import InvalidOption


def refuse_strange_names(options: Mapping[str, str], known: Iterable[str]) -> None:
    """`options` come with names in lower case."""
    by_lower = {name.lower(): name for name in known}
    for name in options:
        if name in by_lower or name.startswith("kafka."):
            continue
        if alike := difflib.get_close_matches(name, by_lower, n=1, cutoff=0.85):
            raise InvalidOption(f"There is no option {name!r}. Is {by_lower[alike[0]]!r} meant?")
    if not options.get("kafka.bootstrap.servers", "").strip():
        raise InvalidOption("The option 'kafka.bootstrap.servers' must say where the cluster is: host:port.")


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise InvalidOption(f"The option '{name}' is true or false, not {text!r}.")
    return text == "true"
