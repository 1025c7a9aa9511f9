"""Patterns of subscriptions: checked with RE2, and in the syntax of librdkafka.

librdkafka compiles POSIX extended expressions without a limit: nested repetitions of a few characters take
gigabytes. What RE2 compiles within its limits is small there, too.
"""

from __future__ import annotations

import re
from typing import Final

from moldau.base.re2_patterns import InvalidPatternError, compile_pattern
from moldau.rest.errors import unprocessable

_MAX_CHARACTERS: Final = 1000
#: Syntax of Java that POSIX lacks, outside of brackets.
_TRANSLATED: Final = {
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\w": "[A-Za-z0-9_]",
    r"\W": "[^A-Za-z0-9_]",
    "(?:": "(",
}
_TOKEN: Final = re.compile(r"\\.|\(\?:|\[(?:\\.|[^\]\\])*\]", re.DOTALL)


def subscription_of(pattern: str) -> str:
    """Return the name that subscribes to the topics of a pattern; `ApiError` 422 if it is not valid."""
    if len(pattern) > _MAX_CHARACTERS:
        raise unprocessable(422, f"The pattern is longer than {_MAX_CHARACTERS} characters.")
    try:
        compile_pattern(pattern)
    except InvalidPatternError as error:
        raise unprocessable(422, f"The pattern is not valid: {error}") from None
    translated = _TOKEN.sub(lambda found: _TRANSLATED.get(found.group(), found.group()), pattern)
    # librdkafka takes names that begin with ^ for expressions.
    return f"^({translated})$"
