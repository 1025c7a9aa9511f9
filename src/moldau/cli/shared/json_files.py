"""JSON files that name partitions: reading them, with sentences for what is wrong."""

from __future__ import annotations

import json
from typing import Any

from moldau.cli.shared.tool import ToolError

_WORDS = {str: "text", int: "a number", list: "a list"}


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ToolError(f"Unable to read file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ToolError(f"Unable to read file {path}: it is not UTF-8 text") from error


def parse_object(text: str) -> dict[str, Any]:
    """The object of a file; an empty one when it holds something else."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ToolError(f"The input string is not a valid JSON ({error})") from error
    return data if isinstance(data, dict) else {}


def check_version(data: dict[str, Any]) -> None:
    """Files say which version of the format they have; there is one so far."""
    if data.get("version", 1) != 1:
        raise ToolError(f"Not supported version field value {data['version']}")


def field(item: object, name: str, kind: type) -> Any:
    if not isinstance(item, dict) or type(item.get(name)) is not kind:
        raise ToolError(
            f"Each of the partitions needs a field {name!r} that is {_WORDS[kind]}: {json.dumps(item)}"
        )
    return item[name]
