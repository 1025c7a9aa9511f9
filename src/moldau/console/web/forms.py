"""Fields of forms: bounded bodies, and values that are checked with a sentence for the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from moldau.http.requests import read_body

_MAX_FIELDS: Final = 1000
MAX_NUMBER: Final = (1 << 63) - 1


class InvalidField(Exception):
    """A field has a value that cannot be used."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Form(Mapping[str, str]):
    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return self._fields[name]

    def __iter__(self) -> Any:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def text(self, name: str, label: str = "") -> str:
        """Return a value without surrounding spaces; with a label, it must not be empty."""
        value = self._fields.get(name, "").strip()
        if label and not value:
            raise InvalidField(f"{label} is empty.")
        return value

    def number(
        self, name: str, label: str, *, least: int = 0, most: int = MAX_NUMBER, default: int | None = None
    ) -> int:
        text = self._fields.get(name, "").strip()
        if not text and default is not None:
            return default
        return checked_number(text, label, least=least, most=most)

    def choice(self, name: str, label: str, choices: Mapping[str, Any] | tuple[str, ...]) -> str:
        value = self._fields.get(name, "").strip()
        if value not in choices:
            raise InvalidField(f"{label} must be one of: {', '.join(choices)}.")
        return value

    def flag(self, name: str) -> bool:
        return self._fields.get(name, "").strip().lower() in ("on", "true", "1", "yes")


def checked_number(text: str, label: str, *, least: int = 0, most: int = MAX_NUMBER) -> int:
    try:
        if len(text) > 20:
            raise ValueError
        value = int(text)
    except ValueError:
        raise InvalidField(f"{label} must be a whole number, not {text[:40] or 'empty'}.") from None
    if not least <= value <= most:
        bound = f"at least {least}" if value < least else f"at most {most}"
        raise InvalidField(f"{label} must be {bound}.")
    return value


def confirm_name(form: Form, kind: str, name: str) -> None:
    """Refuse to delete something whose name the user has not typed."""
    if form.get("name", "") != name:
        raise InvalidField(f"The name does not match the {kind}.")


async def read_form(request: Request, limit: int) -> Form:
    """Read a form, URL-encoded or as a JSON object."""
    body = await read_body(request.scope, request.receive, limit)
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json":
        return Form(_json_fields(body))
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
        )
    except ValueError:
        raise InvalidField("The form cannot be read.") from None
    return Form(dict(pairs))


def _json_fields(body: bytes) -> dict[str, str]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidField("The body is not JSON.") from None
    if not isinstance(value, dict):
        raise InvalidField("The body must be a JSON object.")
    return {
        name: each
        if isinstance(each, str)
        else ""
        if each is None
        else str(each).lower()
        if isinstance(each, bool)
        else str(each)
        if isinstance(each, int | float)
        else json.dumps(each)
        for name, each in value.items()
    }


def parse_settings(text: str) -> dict[str, str]:
    """Parse lines of `name=value`; those that begin with # are comments."""
    found: dict[str, str] = {}
    for line in text.replace("\r", "").split("\n"):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name.strip():
            raise InvalidField(f"Settings are lines of name=value; {stripped[:80]!r} is not.")
        found[name.strip()] = value.strip()
    return found
