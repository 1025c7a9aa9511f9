"""One authority for the tests of TLS: keys take time to create."""

from __future__ import annotations

import pytest

from moldau.security.tls.authority import Authority, IssuedCertificate


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority.create("Unit test CA")


@pytest.fixture(scope="session")
def issued(authority: Authority) -> IssuedCertificate:
    return authority.issue("server", ("localhost", "127.0.0.1"))
