from __future__ import annotations

import pytest

from moldau.security.tls.der import DerError, elements, expect, object_identifier, read_element


def test_short_and_long_lengths() -> None:
    assert read_element(bytes.fromhex("0402aabbcc")) == (4, b"\xaa\xbb", b"\xcc")
    long = b"\x04\x82\x01\x00" + bytes(256)
    assert read_element(long) == (4, bytes(256), b"")
    assert list(elements(bytes.fromhex("05000101ff"))) == [(5, b""), (1, b"\xff")]


@pytest.mark.parametrize("data", ["", "04", "0403aa", "0480", "0485ffffffffff", "1f8101", "0484ffffffff"])
def test_damage_is_an_error(data: str) -> None:
    with pytest.raises(DerError):
        read_element(bytes.fromhex(data))


def test_expected_tags() -> None:
    assert expect(bytes.fromhex("3000ff"), 0x30) == (b"", b"\xff")
    with pytest.raises(DerError, match="0x31"):
        expect(bytes.fromhex("3000"), 0x31)


@pytest.mark.parametrize(
    ("data", "dotted"),
    [("550403", "2.5.4.3"), ("2a864886f70d010901", "1.2.840.113549.1.9.1"), ("883703", "2.999.3")],
)
def test_object_identifiers(data: str, dotted: str) -> None:
    assert object_identifier(bytes.fromhex(data)) == dotted


def test_an_incomplete_object_identifier() -> None:
    with pytest.raises(DerError):
        object_identifier(b"\x2a\x86")
