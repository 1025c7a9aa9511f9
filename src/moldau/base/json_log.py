"""Log records as lines of JSON, for programs that collect logs.

Each line has `time`, `level`, `logger`, `event`, `message`, and the fields of the event if it has any.
`event` is the same for every record of one kind: the name that the caller gives (`extra=event(…)`), or the
text of the message without its values.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any, Final

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
_SECONDS: Final = "%Y-%m-%dT%H:%M:%S"
TEXT_FORMAT: Final = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"


def event(name: str, **fields: Any) -> dict[str, Any]:
    """Return the argument `extra` of a log call: the name of the event, and its fields.

    The text of the line is unchanged; names are stable, so programs may rely on them.
    """
    return {"event": name, "fields": fields}


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": f"{time.strftime(_SECONDS, time.gmtime(record.created))}.{int(record.msecs):03}+00:00",
            "level": record.levelname,
            "logger": record.name,
            "event": getattr(record, "event", None) or str(record.msg),
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _HidingFormatter(logging.Formatter):
    def __init__(self, formatter: logging.Formatter, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._formatter = formatter
        self._hide = hide

    def format(self, record: logging.LogRecord) -> str:
        return self._hide(self._formatter.format(record))


def hide_in_logs(hide: Callable[[str], str]) -> None:
    """Apply a function that removes secrets to every line of the log, those of libraries included."""
    for handler in logging.root.handlers:
        handler.setFormatter(_HidingFormatter(handler.formatter or logging.Formatter(), hide))


def configure_logging(log_format: str, level: int, stream: Any = None) -> None:
    """Log to a stream, standard error by default, as text or as lines of JSON."""
    logging.basicConfig(level=level, format=TEXT_FORMAT, stream=stream)
    if log_format == JSON:
        for handler in logging.root.handlers:
            handler.setFormatter(JsonFormatter())
