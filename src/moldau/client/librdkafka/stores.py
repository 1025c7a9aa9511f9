"""The TLS settings of librdkafka: stores of every type become PEM, which librdkafka takes as text.

librdkafka has no counterpart of `ssl.enabled.protocols`: it offers TLS 1.2 and 1.3, or what the settings of
OpenSSL on the machine allow.
"""

from __future__ import annotations

from typing import Any

from moldau.client.wire.security import SecuritySettings

#: librdkafka's own names, which are passed on.
_OWN = frozenset(
    {
        "ssl.ca.certificate.stores",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.engine.id",
        "ssl.engine.location",
        "ssl.providers",
        "ssl.sigalgs.list",
    }
)


def translate_tls(security: SecuritySettings) -> dict[str, Any]:
    """Read the stores and return librdkafka's settings; `KafkaError` if a store cannot be used."""
    from moldau.security.tls.cipher_suites import cipher_suites
    from moldau.security.tls.stores.entries import certificate_pem
    from moldau.security.tls.stores.files import load_key, load_trust

    tls = security.tls_settings()
    settings: dict[str, Any] = {name: value for name, value in security.properties if name in _OWN}
    settings["ssl.endpoint.identification.algorithm"] = "https" if tls.verify_host_name else "none"
    if not security.verifies_certificates:
        settings["enable.ssl.certificate.verification"] = "false"
    if tls.trust_store is not None:
        settings["ssl.ca.pem"] = "".join(map(certificate_pem, load_trust(tls.trust_store)))
    if tls.key_store is not None:
        entry = load_key(tls.key_store)
        settings["ssl.certificate.pem"] = "".join(map(certificate_pem, entry.chain))
        settings["ssl.key.pem"] = entry.key_pem
        if entry.password is not None:
            settings["ssl.key.password"] = entry.password
    if tls.cipher_suites and (suites := cipher_suites(tls.cipher_suites).tls_1_2):
        settings["ssl.cipher.suites"] = ":".join(suites)
    return settings
