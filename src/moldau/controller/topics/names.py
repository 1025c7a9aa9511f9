"""Legal topic names and collisions of their metric names."""

from __future__ import annotations

import re

MAX_NAME_LENGTH = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_problem(name: str) -> str | None:
    """Return why a topic name is illegal; None if it is legal."""
    problem = None
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        problem = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif _LEGAL_NAME.fullmatch(name) is None:
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None if problem is None else f"Topic name is invalid: {problem}"


def collision_name(topic: str) -> str | None:
    """Return the metric name of a topic, in which `.` becomes `_`; None if it has neither."""
    return topic.replace(".", "_") if "." in topic or "_" in topic else None
