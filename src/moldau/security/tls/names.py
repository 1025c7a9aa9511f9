"""Names in certificates as Kafka shows them: Java's form of RFC 2253, and the principal they become.

Java's `X500Principal.getName()` is neither RFC 4514 nor OpenSSL's form: only nine attributes have keywords,
the others are dotted numbers with the value in hexadecimal DER, and `=` and `#` are always escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.security.principal import ANONYMOUS, USER, KafkaPrincipal
from moldau.security.tls.der import (
    OBJECT_IDENTIFIER,
    SEQUENCE,
    SET,
    elements,
    expect,
    object_identifier,
    read_element,
)

if TYPE_CHECKING:
    from ssl import SSLObject

    from moldau.security.tls.mapping_rules import PrincipalMapping

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
#: UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString.
_STRINGS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
_ESCAPED = frozenset(',=+<>#;"\\')
#: What Java takes for white space at the ends of a value.
_BLANKS = " \r"


def peer_principal(session: SSLObject | None, mapping: PrincipalMapping) -> KafkaPrincipal:
    """Return the principal of a connection: by the certificate of the peer, ANONYMOUS without one."""
    certificate = None if session is None else session.getpeercert(binary_form=True)
    if certificate is None:
        return ANONYMOUS
    return KafkaPrincipal(USER, mapping.name_of(subject_name(certificate)))


def subject_name(certificate: bytes) -> str:
    """Return the subject of a certificate in DER, as Java prints it; `DerError` if it has none."""
    return distinguished_name(_subject(certificate))


def distinguished_name(name: bytes) -> str:
    """Return a Name in DER, without its outer tag, as Java prints it: the last part is first."""
    parts = []
    for tag, content in elements(name):
        if tag == SET:
            parts.append("+".join(_attribute(each) for _, each in elements(content)))
    return ",".join(reversed(parts))


def _subject(certificate: bytes) -> bytes:
    whole, _ = expect(certificate, SEQUENCE)
    fields, _ = expect(whole, SEQUENCE)
    tag, _, rest = read_element(fields)
    if tag == 0xA0:  # the version, which the first version of certificates lacks
        _, _, rest = read_element(rest)
    for _ in range(3):  # signature algorithm, issuer, validity
        _, _, rest = read_element(rest)
    subject, _ = expect(rest, SEQUENCE)
    return subject


def _attribute(content: bytes) -> str:
    identifier, value = expect(content, OBJECT_IDENTIFIER)
    dotted = object_identifier(identifier)
    tag, text, _ = read_element(value)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _STRINGS:
        return f"{keyword or dotted}=#{value.hex()}"
    return f"{keyword}={_escape(text.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    escaped = "".join(f"\\{each}" if each in _ESCAPED else each for each in text).replace("\0", "\\00")
    left = len(escaped) - len(escaped.lstrip(_BLANKS))
    right = len(escaped.rstrip(_BLANKS))
    return "".join(
        f"\\{each}" if index < left or index >= right else each for index, each in enumerate(escaped)
    )
