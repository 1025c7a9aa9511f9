"""JSON that tools read and write: files that name partitions, and events as lines of JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from moldau.cli.shared.tool import ToolError

_KIND_NAMES = {str: "a string", int: "an integer", list: "a list"}


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ToolError(f"Unable to read file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ToolError(f"Unable to read file {path}: it is not UTF-8 text") from error


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object; return an empty one if the text is another kind of JSON value."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ToolError(f"The input string is not a valid JSON ({error})") from error
    return data if isinstance(data, dict) else {}


def check_version(data: dict[str, Any]) -> None:
    """Raise an error unless the version of the file format, 1 by default, is 1."""
    if data.get("version", 1) != 1:
        raise ToolError(f"Not supported version field value {data['version']}")


def field(item: object, name: str, kind: type) -> Any:
    """Return a field of an element of `partitions` or `topics`, which must be of the given type."""
    if not isinstance(item, dict) or type(item.get(name)) is not kind:
        raise ToolError(
            f"Each of the partitions needs a field {name!r} that is {_KIND_NAMES[kind]}: {json.dumps(item)}"
        )
    return item[name]


def print_event(name: str, **details: Any) -> None:
    """Print an event for programs that watch the tool: a timestamp, a name and details."""
    event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **details}
    sys.stdout.write(json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n")
    sys.stdout.flush()
