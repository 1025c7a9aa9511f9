"""Functions of rules beyond CEL's own: formats of text, by the names of Confluent's clients."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from celpy import celtypes

_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")


def _is_hostname(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    return (
        len(text) <= 253 and all(_LABEL.fullmatch(label) for label in labels) and not labels[-1].isdecimal()
    )


def _is_email(text: str) -> bool:
    user, at, host = text.partition("@")
    return bool(at) and parseaddr(text)[1] == text and 0 < len(user) <= 64 and _is_hostname(host)


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _is_uri(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme and parts.netloc)


def _function(check: Callable[[str], bool]) -> Callable[[Any], Any]:
    def evaluate(value: Any) -> Any:
        try:
            return celtypes.BoolType(check(str(value)))
        except ValueError:
            return celtypes.BoolType(False)

    return evaluate


FUNCTIONS = {
    "isIpv4": _function(_parses(ipaddress.IPv4Address)),
    "isIpv6": _function(_parses(ipaddress.IPv6Address)),
    "isEmail": _function(_is_email),
    "isUri": _function(_is_uri),
    "isUriRef": _function(_parses(urlsplit)),
    "isHostname": _function(_is_hostname),
    "isUuid": _function(_parses(uuid.UUID)),
}
