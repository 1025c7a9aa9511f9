"""Classify the failure of a query: whether a restart can help, and a short message.

Spark's message names the cause first and then describes the query with its whole plan, which must not be
searched. A cause in Python has a traceback, whose last line is the message.
"""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException, IllegalArgumentException

from moldau.base.errors import ErrorCode, KafkaError
from moldau.pipelines.runtime.checks import STOPPED
from moldau.pipelines.runtime.definition import BadDefinition

#: Errors of Spark about a query or its options. (Parse errors are analysis errors.)
_INVALID_QUERY = (AnalysisException, IllegalArgumentException)
#: The line after which Spark describes the query.
_QUERY = "=== Streaming Query ==="
#: The error that a failed check raises inside a query.
_RAISED = re.compile(rf"\[USER_RAISED_EXCEPTION\] {STOPPED} (.*)")
#: Spark's error conditions for state in the checkpoint that does not match the query.
_OTHER_STATE = re.compile(r"\[(STATE_STORE_\w*SCHEMA\w*|STREAMING_STATEFUL_OPERATOR_NOT_MATCH\w*)[\].]")
_OTHER_STATE_ADVICE = (
    "The state in the checkpoint belongs to a different query. Restore the query, or give the pipeline "
    "another name: it then starts with new state at its starting offsets. Error of Spark:"
)
_FULL = "No space left on device"
_FULL_ADVICE = "The disk of the checkpoint or of temporary files is full. Free some space:"
_TRACEBACK = "Traceback (most recent call last):"
_MAX_LENGTH = 1000


class BadData(ValueError):
    """Too many rows failed a check."""


def is_fatal(error: BaseException) -> bool:
    """Return whether the same error would occur again after a restart."""
    if isinstance(error, (BadDefinition, BadData, *_INVALID_QUERY)):
        return True
    if isinstance(error, KafkaError) and error.code is ErrorCode.INVALID_CONFIG:
        return True
    cause = _cause(error)
    return bool(_RAISED.search(cause) or _OTHER_STATE.search(cause))


def short_message(error: BaseException) -> str:
    """Return the message of an error in a few lines."""
    cause = _cause(error)
    raised = _RAISED.search(cause)
    if raised is not None:
        return _tidy(raised[1])
    message = _python_message(cause) or " ".join(_lines(cause)[:3])
    advice = [_OTHER_STATE_ADVICE] if _OTHER_STATE.search(cause) else []
    advice += [_FULL_ADVICE] if _FULL in cause else []
    return _tidy(" ".join([*advice, message]))[:_MAX_LENGTH] or type(error).__name__


def _cause(error: BaseException) -> str:
    text = str(error).partition(_QUERY)[0]
    # The plan follows the message about an expression.
    return text.partition(";\n")[0] if isinstance(error, AnalysisException) else text


def _lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith(("at ", "JVM stacktrace", "=="))]


def _python_message(text: str) -> str | None:
    """Return the last line of the last traceback, without the class name of errors of this package."""
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
