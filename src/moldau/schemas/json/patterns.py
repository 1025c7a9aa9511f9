"""Regular expressions of `pattern` and `patternProperties`, evaluated in linear time.

RE2 evaluates what it can parse. Expressions that only backtracking engines support (lookaround, back
references) stay unevaluated: they match nothing, and a compatibility check compares only their text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

MAX_PATTERN_CHARS = 10_000
#: The memory of a compiled expression; beyond it RE2 refuses the expression.
MAX_COMPILED_BYTES = 1 << 20


class PatternError(Exception):
    """A text that is not a regular expression."""


class Pattern:
    """A compiled regular expression."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str) -> None:
        """Compile; raise `PatternError` if it is no regular expression of any supported syntax."""
        self.text = text
        self._compiled = _compile(text)

    @property
    def evaluated(self) -> bool:
        """Whether the expression can be evaluated in linear time."""
        return self._compiled is not None

    def found_in(self, value: str) -> bool:
        """Return whether any part of the value matches; False for an unevaluated expression."""
        if self._compiled is None:
            return False
        # RE2 works on UTF-8, which has no lone surrogates.
        return self._compiled.search(value.encode("utf-8", "replace")) is not None


@lru_cache(maxsize=1024)
def _compile(text: str) -> Any:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_COMPILED_BYTES
    options.never_capture = True
    try:
        return re2.compile(text.encode("utf-8", "replace"), options)
    except re2.error:
        _check_syntax(text)
        return None


def _check_syntax(text: str) -> None:
    """Raise `PatternError` for an expression that a backtracking engine would refuse, too."""
    if len(text) > MAX_PATTERN_CHARS:
        return
    try:
        re.compile(_without_java_syntax(text))
    except re.error as error:
        raise PatternError(str(error)) from error
    except (RecursionError, OverflowError):
        return


def _without_java_syntax(text: str) -> str:
    # Character properties and quoted text are known to Java and ECMAScript, not to Python.
    return (
        re.sub(r"\\[pP](\{[^}]*\}|\w)|\\[QEGRXhHvVZz]|\\k<\w+>|\\u\{?[0-9A-Fa-f]+\}?|\\c\w", "x", text)
        .replace("(?<", "(?P<")
        .replace("(?P<=", "(?<=")
        .replace("(?P<!", "(?<!")
    )
