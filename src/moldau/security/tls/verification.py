"""Checks before stores are used: does a node accept its own certificate, may a certificate replace another.

A node whose brokers talk TLS to each other must trust its own certificate, or the cluster would fall apart
with the next connections; Kafka checks the same with a handshake in memory.
"""

from __future__ import annotations

import ssl

from moldau.config.definition import ConfigError
from moldau.security.tls.names import subject_name

#: A handshake needs three flights in each direction at most.
_FLIGHTS = 8


def check_handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raise `ConfigError` unless a client with one context can connect to a server with the other.

    The client's context must not verify host names.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        for _ in range(_FLIGHTS):
            sides = [each for each in sides if not _complete(each)]
            if not sides:
                return
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason or str(error)
        raise ConfigError(
            "brokers could not connect to each other with this key store and trust store: "
            f"{reason}. Does the trust store contain the authority of the certificate?"
        ) from None
    raise ConfigError("brokers could not connect to each other with this key store and trust store.")


def _complete(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def check_replacement(old: bytes, new: bytes, *, allow_dn_changes: bool, allow_san_changes: bool) -> None:
    """Raise `ConfigError` if a certificate (in DER) must not replace another one."""
    if not allow_dn_changes:
        existing, given = subject_name(old), subject_name(new)
        if existing.lower() != given.lower():
            raise ConfigError(
                f"Keystore DistinguishedName does not match: existing={existing}, new={given} "
                "(ssl.allow.dn.changes=false)."
            )
    if not allow_san_changes:
        missing = _alternative_names(old) - _alternative_names(new)
        if missing:
            raise ConfigError(
                "Keystore SubjectAltNames do not match: the new certificate lacks "
                f"{', '.join(sorted(missing))} (ssl.allow.san.changes=false)."
            )


def _alternative_names(certificate: bytes) -> set[str]:
    from cryptography import x509

    try:
        extensions = x509.load_der_x509_certificate(certificate).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    except ValueError as error:
        raise ConfigError(f"the certificate has an unusual encoding: {error}.") from None
    return {f"{type(each).__name__}:{each.value}" for each in names}
