"""Classification of hosts."""

from __future__ import annotations

from moldau.cli.moldau.doctor.probe import is_loopback, is_wildcard


def test_loopback_and_wildcard_hosts() -> None:
    assert is_loopback("localhost")
    assert is_loopback("127.1.2.3")
    assert is_loopback("::1")
    assert not is_loopback("example.org")
    assert is_wildcard("::")
    assert not is_wildcard("10.0.0.1")
