"""Log records as lines of JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

from moldau.base.json_log import JsonFormatter


def line(
    message: str, *arguments: object, exception: Exception | None = None, **extra: Any
) -> dict[str, Any]:
    error = None if exception is None else (type(exception), exception, None)
    record = logging.LogRecord("moldau.x", logging.INFO, "f.py", 1, message, arguments, error)
    record.__dict__.update(extra)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def test_the_event_is_the_message_without_its_values() -> None:
    found = line("node %d is ready on %s", 3, "a\nb")
    assert (found["event"], found["message"]) == ("node %d is ready on %s", "node 3 is ready on a\nb")
    assert (found["level"], found["logger"]) == ("INFO", "moldau.x")
    assert found["time"].endswith("+00:00")


def test_fields_of_an_event_are_fields_of_the_line() -> None:
    found = line("%s", "text", event="audit", fields={"api": "CreateTopics", "resources": ["t"]})
    assert (found["event"], found["api"], found["resources"]) == ("audit", "CreateTopics", ["t"])


def test_an_exception_is_part_of_the_line() -> None:
    assert "ValueError: broken" in line("failed", exception=ValueError("broken"))["exception"]
