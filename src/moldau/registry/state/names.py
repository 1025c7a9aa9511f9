"""Names of subjects and contexts: `:.context:subject`, or a bare subject in the default context.

A qualified name without a subject (`:.context:`) names the context itself; settings may be stored for it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
#: Settings of this context apply where neither the subject, its context, nor the top level has any.
GLOBAL_CONTEXT: Final = ".__GLOBAL"
#: As a prefix: the subjects of all contexts.
ALL_CONTEXTS: Final = ":*:"
_RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})


class Name(NamedTuple):
    """A subject and the context it belongs to."""

    context: str
    subject: str

    @property
    def prefix(self) -> str:
        """The context as the prefix of a name."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    @property
    def qualified(self) -> str:
        return self.prefix + self.subject


@lru_cache(4096)
def parse_name(name: str) -> Name:
    """Split a name into context and subject."""
    if name.startswith(":."):
        context, _, subject = name[1:].partition(":")
        return Name(context, subject)
    if name.startswith(ALL_CONTEXTS):
        return Name("*", name.removeprefix(ALL_CONTEXTS))
    return Name(DEFAULT_CONTEXT, name)


def normalize(name: str) -> str:
    """Return the name in the form in which it is stored: without the default context."""
    return parse_name(name).qualified if name.startswith(":") else name


def context_of(name: str) -> str:
    return parse_name(name).context if name.startswith(":") else DEFAULT_CONTEXT


def is_top_level(name: str | None) -> bool:
    """Return whether settings for `name` are those of the top level."""
    return name is None or parse_name(name) == (DEFAULT_CONTEXT, "")


def relative_to(parent: str, name: str) -> str:
    """Return the full name of a subject that a schema of `parent` refers to."""
    named = parse_name(name)
    if named.context != DEFAULT_CONTEXT:
        return named.qualified
    return Name(context_of(parent), named.subject).qualified


def in_context(context: str, name: str) -> str:
    """Return the full name of a subject requested below `/contexts/{context}`."""
    return name if name.startswith((":.", ALL_CONTEXTS)) else context_prefix(context) + name


def context_prefix(context: str) -> str:
    """Return the prefix of a context named `ctx`, `.ctx` or `:.ctx:`."""
    bare = context.strip(":")
    if not bare.startswith("."):
        bare = "." + bare
    return "" if bare == DEFAULT_CONTEXT else f":{bare}:"


def covers(scope: str | None, name: str) -> bool:
    """Return whether the subject `name` is `scope` itself or belongs to the context that `scope` names."""
    if scope is None or scope == name:
        return True
    named = parse_name(scope)
    return not named.subject and named.context in (GLOBAL_CONTEXT, context_of(name))


def is_valid_subject(name: str, *, setting: bool = False, allow_empty: bool = True) -> bool:
    """Return whether a name may be used for a new schema, or (`setting`) for a config or mode."""
    if any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in name):
        return False
    named = parse_name(name)
    if named.subject in _RESERVED:
        return False
    if setting:
        return True
    if named.context == GLOBAL_CONTEXT:
        return False
    return allow_empty or named.subject not in ("", "*")
