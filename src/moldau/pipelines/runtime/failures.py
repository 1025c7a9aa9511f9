"""What to make of a failure: whether it would happen again, and what to tell about it.

Spark's text about a query that failed names the cause first, then everything that is known of the query, with
the whole plan: nothing may be looked for there. A cause that comes from Python has a traceback, and its last
line says it.
"""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException, IllegalArgumentException

from moldau.base.errors import ErrorCode, KafkaError
from moldau.pipelines.runtime.checks import STOPPED
from moldau.pipelines.runtime.definition import BadDefinition

#: Raised by Spark about a query or its options. (Parse errors are a kind of the first.)
_NOT_UNDERSTOOD = (AnalysisException, IllegalArgumentException)
#: Where Spark ends the cause and begins to tell of the query.
_QUERY = "=== Streaming Query ==="
#: How a condition of ours that stops a query comes back.
_RAISED = re.compile(rf"\[USER_RAISED_EXCEPTION\] {STOPPED} (.*)")
#: Spark's names for state in a checkpoint that the query would not have made.
_OTHER_STATE = re.compile(r"\[(STATE_STORE_\w*SCHEMA\w*|STREAMING_STATEFUL_OPERATOR_NOT_MATCH\w*)[\].]")
_OTHER_STATE_ADVICE = (
    "The state in the checkpoint is that of another query. Put the query back as it was, or give the "
    "pipeline another name: it then begins with new state, at its starting offsets. Spark says:"
)
_FULL = "No space left on device"
_FULL_ADVICE = "A disk is full, that of the checkpoint or of temporary files. With room it goes on:"
_TRACEBACK = "Traceback (most recent call last):"
_LONGEST = 1000


class BadData(ValueError):
    """Too many rows failed a check."""


def is_fatal(error: BaseException) -> bool:
    """Whether the same would happen again."""
    if isinstance(error, (BadDefinition, BadData, *_NOT_UNDERSTOOD)):
        return True
    if isinstance(error, KafkaError) and error.code is ErrorCode.INVALID_CONFIG:
        return True
    cause = _cause(error)
    return bool(_RAISED.search(cause) or _OTHER_STATE.search(cause))


def brief(error: BaseException) -> str:
    """What to tell of an error, in a few lines."""
    cause = _cause(error)
    raised = _RAISED.search(cause)
    if raised is not None:
        return _tidy(raised[1])
    said = _said_by_python(cause) or " ".join(_lines(cause)[:3])
    advice = [_OTHER_STATE_ADVICE] if _OTHER_STATE.search(cause) else []
    advice += [_FULL_ADVICE] if _FULL in cause else []
    return _tidy(" ".join([*advice, said]))[:_LONGEST] or type(error).__name__


def _cause(error: BaseException) -> str:
    text = str(error).partition(_QUERY)[0]
    # A plan follows the message about an expression.
    return text.partition(";\n")[0] if isinstance(error, AnalysisException) else text


def _lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith(("at ", "JVM stacktrace", "=="))]


def _said_by_python(text: str) -> str | None:
    """The last line of the last traceback: the message, and the name of an error that is not ours."""
    found = None
    rest = text
    while _TRACEBACK in rest:
        rest = rest.partition(_TRACEBACK)[2]
        last = next((line for line in rest.splitlines() if line and not line.startswith(" ")), None)
        found = last or found
    if found is None:
        return None
    name, colon, message = found.partition(": ")
    return message if colon and name.startswith("moldau.") else found


def _tidy(text: str) -> str:
    return re.sub(r"\s*SQLSTATE: \w{5}\b", "", text).strip()
