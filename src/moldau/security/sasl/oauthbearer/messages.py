"""The messages of an OAUTHBEARER exchange (RFC 7628): `n,,^Aauth=Bearer <token>^A<name>=<value>^A^A`.

They are parsed by splitting, in linear time. A SASL extension has a name of letters and a printable value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

#: The client's answer to an error of the server.
ACKNOWLEDGEMENT: Final = b"\x01"

_SEPARATOR = "\x01"
_AUTH = "auth"
#: Each extension costs CPU before the client is known.
_MAX_PARTS = 64
_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")


@dataclass(frozen=True, slots=True)
class ClientMessage:
    token: str = field(repr=False)
    authorization_id: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        extensions = "".join(f"{name}={value}{_SEPARATOR}" for name, value in self.extensions.items())
        authorization = f"a={self.authorization_id}" if self.authorization_id else ""
        text = (
            f"n,{authorization},{_SEPARATOR}{_AUTH}=Bearer {self.token}{_SEPARATOR}{extensions}{_SEPARATOR}"
        )
        return text.encode()


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raise `ValueError` for an extension that cannot be sent."""
    for name, value in extensions.items():
        if name == _AUTH or not _NAME.fullmatch(name):
            raise ValueError(f"Extension name {name} is invalid")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"The value of extension {name} is invalid")


def parse_client_message(message: bytes) -> ClientMessage:
    """Parse the client's first message; `ValueError` with a reason that shows nothing of the token."""
    parts = message.decode("utf-8", "replace").split(_SEPARATOR, _MAX_PARTS)
    if len(parts) > _MAX_PARTS:
        raise ValueError("too many extensions")
    if len(parts) < 3 or parts[-1] or parts[-2]:
        raise ValueError("the message does not end with two separators")
    authorization_id = _authorization_id(parts[0])
    pairs: dict[str, str] = {}
    for part in parts[1:-2]:
        name, equals, value = part.partition("=")
        if not equals or name in pairs or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError("a pair is not of the form name=value, or appears twice")
        pairs[name] = value
    if _AUTH not in pairs:
        raise ValueError("'auth' not specified")
    return ClientMessage(_token(pairs.pop(_AUTH)), authorization_id, pairs)


def _authorization_id(header: str) -> str:
    fields = header.split(",")
    if len(fields) != 3 or fields[0] != "n" or fields[2]:
        raise ValueError("the message does not begin with 'n,,'")
    if not fields[1]:
        return ""
    name = fields[1].removeprefix("a=")
    if name == fields[1] or not name or not name.isascii():
        raise ValueError("invalid authorization id")
    user = name.replace("=2C", ",")
    if "=" in user.replace("=3D", ""):
        raise ValueError("the authorization id is not escaped")
    return user.replace("=3D", "=")


def _token(auth: str) -> str:
    scheme, _, token = auth.partition(" ")
    token = token.lstrip(" ")
    if scheme.lower() != "bearer":
        raise ValueError("the scheme of 'auth' is not Bearer")
    if not _TOKEN.fullmatch(token):
        raise ValueError("invalid 'auth' format")
    return token


def error_message(status: str, scope: str | None) -> str:
    """Return the server's answer to a token it refuses, as Kafka formats it."""
    parts = [f'"status":{json.dumps(status)}']
    if scope is not None:
        parts.append(f'"scope":{json.dumps(scope)}')
    return "{" + ", ".join(parts) + "}"
