"""Random names of certificates and mapping rules: the same principals as Java and Kafka make of them."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable

import pytest

from moldau.config.definition import ConfigError
from moldau.security.tls.der import DerError
from moldau.security.tls.mapping_rules import NoMatchingRule, PrincipalMapping
from moldau.security.tls.names import distinguished_name
from tests.interop.java_oracle import ask_java

pytestmark = pytest.mark.interop

COUNT = 1500
_KEYWORDS = ("2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11")
_OTHERS = (
    "0.9.2342.19200300.100.1.1",
    "0.9.2342.19200300.100.1.25",
    "1.2.840.113549.1.9.1",
    "2.5.4.5",
    "2.5.4.12",
    "1.3.6.1.4.1.99999.1",
)
_SEQUENCE, _SET, _IDENTIFIER = 0x30, 0x31, 0x06
_UTF8, _PRINTABLE, _T61, _IA5, _BMP = 0x0C, 0x13, 0x14, 0x16, 0x1E
_LETTERS = "aAbz09 ,+=<>#;\"\\/'().-_@:*ä文"
RULES = (
    "DEFAULT",
    "RULE:^CN=([^,]*),.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?)(,.*)?$/$1@$2/L,DEFAULT",
    "RULE:^.*[Oo]=(\\w+).*$/$1/U,DEFAULT",
    "RULE:^(.*)$/$1/",
    "RULE:^CN=(\\w+)$/$0-$1/,RULE:^(.*)$/other/L",
    "RULE:CN=(.)(.)(.*)/$3$2$1/U,DEFAULT",
    "RULE:^nothing$/x/",
)


def _element(tag: int, content: bytes) -> bytes:
    if len(content) < 128:
        return bytes((tag, len(content))) + content
    return bytes((tag, 0x82)) + len(content).to_bytes(2, "big") + content


def _identifier(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    content = bytearray((40 * first + second,))
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        content += bytes(reversed(groups))
    return _element(_IDENTIFIER, bytes(content))


def _value(choice: random.Random) -> bytes:
    text = "".join(choice.choices(_LETTERS, k=choice.choice((0, 1, 2, 5, 12))))
    plain = "".join(each for each in text if each.isascii())
    tag = choice.choice((_UTF8, _UTF8, _PRINTABLE, _IA5, _BMP, _T61))
    encoded = {_UTF8: text.encode(), _BMP: text.encode("utf-16-be")}.get(tag, plain.encode())
    return _element(tag, encoded)


def _name(seed: int) -> bytes:
    """Return a Name in DER."""
    choice = random.Random(seed)
    parts = b""
    for _ in range(choice.randint(0, 4)):
        attributes = [
            _element(_SEQUENCE, _identifier(choice.choice(_KEYWORDS + _OTHERS)) + _value(choice))
            for _ in range(choice.choice((1, 1, 1, 2)))
        ]
        parts += _element(_SET, b"".join(sorted(attributes)))
    return _element(_SEQUENCE, parts)


def _content(name: bytes) -> bytes:
    """Return a Name without its outer tag."""
    return name[4:] if name[1] == 0x82 else name[2:]


def _or_none(work: Callable[[], str]) -> str | None:
    try:
        return work()
    except (DerError, NoMatchingRule, ConfigError):
        return None


def _decoded(answer: str) -> str | None:
    return None if answer == "error" else base64.b64decode(answer).decode()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_names_of_certificates_are_javas() -> None:
    names = [_name(seed) for seed in range(COUNT)]
    theirs = [
        _decoded(answer)
        for _, answer in ask_java("CertificateNames", (f"NAME\t{each.hex()}" for each in names))
    ]
    ours = [_or_none(lambda name=each: distinguished_name(_content(name))) for each in names]
    different = [
        f"{name.hex()}: Java {a!r}, ours {b!r}"
        for name, a, b in zip(names, theirs, ours, strict=True)
        if a != b
    ]
    assert not different, f"{len(different)} differences\n" + "\n".join(different[:10])


def test_mapping_rules_give_kafkas_principals() -> None:
    names = [distinguished_name(_content(_name(seed))) for seed in range(200)]
    names += ["CN=alice,OU=Clients,O=Moldau", "CN=bob", "OU=x,O=Org", ""]
    cases = [(rules, name) for rules in RULES for name in names]
    lines = (f"RULE\t{_encoded(rules)}\t{_encoded(name)}" for rules, name in cases)
    theirs = [_decoded(answer) for _, answer in ask_java("CertificateNames", lines)]
    ours = [_or_none(lambda case=case: PrincipalMapping(case[0]).name_of(case[1])) for case in cases]
    different = [
        f"{case}: Kafka {a!r}, ours {b!r}" for case, a, b in zip(cases, theirs, ours, strict=True) if a != b
    ]
    assert not different, f"{len(different)} differences\n" + "\n".join(different[:10])
