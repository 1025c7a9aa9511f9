from __future__ import annotations

import ssl

import pytest

from moldau.config.definition import ConfigError
from moldau.security.tls.cipher_suites import cipher_suites

NAMES = {
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA": "DHE-RSA-AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
}


@pytest.mark.parametrize("java", NAMES)
def test_names_of_java_are_those_of_openssl(java: str) -> None:
    assert cipher_suites((java,)).tls_1_2 == (NAMES[java],)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(NAMES[java])


def test_suites_of_tls_1_3_are_apart() -> None:
    suites = cipher_suites(
        ("TLS_AES_256_GCM_SHA384", "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "ECDHE-RSA-AES128-GCM-SHA256")
    )
    assert suites == (("ECDHE-RSA-AES128-GCM-SHA256",), {"TLS_AES_256_GCM_SHA384"})


def test_other_words_are_refused() -> None:
    with pytest.raises(ConfigError, match="not the name of a cipher suite"):
        cipher_suites(("all of them",))
