"""Regular expressions that clients send, compiled with RE2 as in Kafka.

RE2 matches in time proportional to the text, whatever the expression, so a client cannot stall a broker.
The library takes 4 MB, and most nodes never compile an expression: it is imported with the first one.
"""

from __future__ import annotations

from typing import Any, Protocol

#: RE2's error messages, and the words that RE2/J, the library Kafka uses, has for them.
_RE2J_REASONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
}
#: An expression that needs more memory than this when compiled is refused (RE2's own default).
_MAX_MEMORY_BYTES = 8 << 20


class InvalidPatternError(ValueError):
    """RE2 refuses an expression; the message is the reason in the words of RE2/J."""


class Pattern(Protocol):
    """A compiled expression, reduced to what brokers use."""

    def fullmatch(self, text: str) -> Any | None: ...


def compile_pattern(expression: str) -> Pattern:
    """Compile an expression; raise `InvalidPatternError` if RE2 does not accept it."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    try:
        pattern: Pattern = re2.compile(expression, options)
    except re2.error as error:
        raise InvalidPatternError(_reason(error)) from error
    return pattern


def _reason(error: Exception) -> str:
    """Return the kind of mistake without the quoted part of the expression."""
    message = error.args[0] if error.args else ""
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    kind = text.partition(":")[0]
    return _RE2J_REASONS.get(kind, kind)
