"""The expected names are those that Java 17 prints for `X500Principal.getName()`."""

from __future__ import annotations

import random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from moldau.security.principal import ANONYMOUS
from moldau.security.tls.authority import Authority
from moldau.security.tls.der import DerError
from moldau.security.tls.mapping_rules import PrincipalMapping
from moldau.security.tls.names import peer_principal, subject_name


def name_of(authority: Authority, *attributes: tuple[x509.ObjectIdentifier, str]) -> str:
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in attributes])
    return subject_name(authority.issue(name, ("localhost",)).certificate.public_bytes(Encoding.DER))


def test_the_last_part_is_first(authority: Authority) -> None:
    attributes = (
        (NameOID.COUNTRY_NAME, "CZ"),
        (NameOID.STATE_OR_PROVINCE_NAME, "Bohemia"),
        (NameOID.LOCALITY_NAME, "Praha"),
        (NameOID.ORGANIZATION_NAME, "Moldau"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Brokers"),
        (NameOID.COMMON_NAME, "broker-1"),
    )
    assert name_of(authority, *attributes) == "CN=broker-1,OU=Brokers,O=Moldau,L=Praha,ST=Bohemia,C=CZ"


def test_attributes_with_and_without_keywords(authority: Authority) -> None:
    assert name_of(authority, (NameOID.USER_ID, "u"), (NameOID.DOMAIN_COMPONENT, "org")) == "DC=org,UID=u"
    assert name_of(authority, (NameOID.EMAIL_ADDRESS, "a@b")) == "1.2.840.113549.1.9.1=#1603614062"
    assert name_of(authority, (NameOID.SERIAL_NUMBER, "7")) == "2.5.4.5=#130137"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a,b", r"a\,b"),
        ("a=b#c", r"a\=b\#c"),
        ('a+b"c\\d<e>f;g', r"a\+b\"c\\d\<e\>f\;g"),
        (" a b  ", r"\ a b\ \ "),
        ("Žofín 文", "Žofín 文"),
        ("a\0b", r"a\00b"),
        ("#", r"\#"),
    ],
)
def test_escapes(authority: Authority, text: str, shown: str) -> None:
    assert name_of(authority, (NameOID.COMMON_NAME, text)) == f"CN={shown}"


def test_parts_with_several_attributes_and_empty_names(authority: Authority) -> None:
    several = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
    )
    issued = authority.issue(x509.Name([several]), ("localhost",))
    assert set(subject_name(issued.certificate.public_bytes(Encoding.DER)).split("+")) == {"CN=a", "UID=b"}
    assert name_of(authority) == ""


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        (_ASN1Type.BMPString, r"CN=\00a\00b"),
        (_ASN1Type.UniversalString, "CN=#1c080000006100000062"),
        (_ASN1Type.NumericString, "CN=#12026162"),
        (_ASN1Type.T61String, "CN=ab"),
    ],
)
def test_odd_encodings_are_shown_as_java_shows_them(
    authority: Authority, encoding: _ASN1Type, shown: str
) -> None:
    odd = x509.NameAttribute(NameOID.COMMON_NAME, "ab", _type=encoding)
    issued = authority.issue(x509.Name([odd]))
    assert subject_name(issued.certificate.public_bytes(Encoding.DER)) == shown


def test_without_certificate_a_client_is_anonymous() -> None:
    assert peer_principal(None, PrincipalMapping("DEFAULT")) == ANONYMOUS


def test_damaged_certificates(authority: Authority) -> None:
    source = authority.certificate.public_bytes(Encoding.DER)
    randomness = random.Random(14)
    for _ in range(500):
        damaged = bytearray(source)
        damaged[randomness.randrange(len(damaged))] = randomness.randrange(256)
        try:
            subject_name(bytes(damaged[: randomness.randrange(len(damaged))]))
        except DerError:
            continue
    with pytest.raises(DerError):
        subject_name(b"")
