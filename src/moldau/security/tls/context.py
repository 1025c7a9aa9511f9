"""The TLS contexts of servers and clients, made from settings.

Python's `ssl` loads a private key only from a file. The key reaches OpenSSL through a file in memory (a
memfd), or through pipes on systems without memfd; it is never written to a disk.

Trust follows Java: each certificate of the trust store is an anchor, also an intermediate or a leaf.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from moldau.config.definition import ConfigError
from moldau.security.tls.cipher_suites import DEFAULT_TLS_1_3, cipher_suites
from moldau.security.tls.settings import TlsSettings
from moldau.security.tls.stores.entries import KeyEntry
from moldau.security.tls.stores.files import load_key, load_trust

logger = logging.getLogger(__name__)

_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_DISABLE: Final = {
    "TLSv1": ssl.OP_NO_TLSv1,
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
    "TLSv1.3": ssl.OP_NO_TLSv1_3,
}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
#: What OpenSSL's reasons mean for a key store.
_KEY_REASONS: Final = {
    "KEY_VALUES_MISMATCH": "the private key does not belong to the certificate",
    "BAD_DECRYPT": "the password of the private key is wrong (ssl.key.password)",
    "BAD_PASSWORD_READ": "the private key is encrypted, but ssl.key.password is not set",
    "EE_KEY_TOO_SMALL": "the key of the certificate is too small to be secure",
    "CA_MD_TOO_WEAK": "the certificate is signed with a digest that is no longer secure",
}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a listener; `ConfigError` if a store cannot be used."""
    if settings.key_store is None:
        raise ConfigError(
            "an SSL listener needs a certificate: set ssl.keystore.location, "
            "or ssl.keystore.key and ssl.keystore.certificate.chain."
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _apply_protocols(context, settings)
    use_key(context, load_key(settings.key_store))
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    if settings.client_auth != "none":
        _apply_trust(context, settings, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of connections to servers; `ConfigError` if a store cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _apply_protocols(context, settings)
    context.check_hostname = settings.verify_host_name
    if settings.key_store is not None:
        use_key(context, load_key(settings.key_store))
    _apply_trust(context, settings, ssl.Purpose.SERVER_AUTH)
    return context


def use_key(context: ssl.SSLContext, entry: KeyEntry) -> None:
    """Load key and chain into a context; `ConfigError` with the reason if OpenSSL refuses them."""
    try:
        with _key_files(entry.pem.encode("ascii")) as (chain_path, key_path):
            context.load_cert_chain(chain_path, key_path, lambda: entry.password or "")
    except ssl.SSLError as error:
        raise ConfigError(f"the key store cannot be used: {_key_reason(error, entry)}.") from None


def _key_reason(error: ssl.SSLError, entry: KeyEntry) -> str:
    if error.reason in _KEY_REASONS:
        return _KEY_REASONS[error.reason]
    if entry.password is not None:
        return f"wrong ssl.key.password, or a damaged key or certificate ({error.reason or error})"
    return f"a damaged key or certificate ({error.reason or error})"


def _apply_trust(context: ssl.SSLContext, settings: TlsSettings, purpose: ssl.Purpose) -> None:
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.trust_store is None:
        context.load_default_certs(purpose)
        return
    for certificate in load_trust(settings.trust_store):
        try:
            context.load_verify_locations(cadata=certificate)
        except ssl.SSLError as error:
            where = settings.trust_store.location or "ssl.truststore.certificates"
            raise ConfigError(f"{where} contains a damaged certificate ({error.reason or error}).") from None


def _apply_protocols(context: ssl.SSLContext, settings: TlsSettings) -> None:
    enabled = set(settings.protocols)
    if settings.cipher_suites:
        enabled &= _versions_of_suites(context, settings)
    if not enabled:
        raise ConfigError("ssl.cipher.suites has no suite for any of ssl.enabled.protocols.")
    context.minimum_version = min(_VERSIONS[each] for each in enabled)
    context.maximum_version = max(_VERSIONS[each] for each in enabled)
    # A client could demand one expensive handshake after the other on a single connection.
    context.options |= ssl.OP_NO_RENEGOTIATION
    for name, option in _DISABLE.items():
        if name not in enabled:
            context.options |= option


def _versions_of_suites(context: ssl.SSLContext, settings: TlsSettings) -> set[str]:
    """Choose the suites of TLS 1.2 and return the versions that have any."""
    suites = cipher_suites(settings.cipher_suites)
    versions: set[str] = set()
    if suites.tls_1_2:
        try:
            context.set_ciphers(":".join(suites.tls_1_2))
        except ssl.SSLError:
            raise ConfigError(
                f"ssl.cipher.suites={','.join(settings.cipher_suites)} has no suite that OpenSSL offers."
            ) from None
        versions |= {"TLSv1", "TLSv1.1", "TLSv1.2"}
    if suites.tls_1_3:
        versions.add("TLSv1.3")
        if not suites.tls_1_3 >= DEFAULT_TLS_1_3:
            logger.warning(
                "ssl.cipher.suites: suites of TLS 1.3 cannot be chosen one by one, all of them are enabled"
            )
    return versions


@contextmanager
def _key_files(pem: bytes) -> Iterator[tuple[str, str]]:
    """Return the names of two files with the content `pem`, which exist in memory only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("moldau-key", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(pem)
            path = f"/proc/self/fd/{descriptor}"
            yield path, path
        finally:
            os.close(descriptor)
        return
    with _piped(pem) as chain_path, _piped(pem) as key_path:
        yield chain_path, key_path


@contextmanager
def _piped(data: bytes) -> Iterator[str]:
    """Return the name of a pipe from which `data` can be read once."""
    reader, writer = os.pipe()
    thread = threading.Thread(target=_feed, args=(writer, data), daemon=True)
    thread.start()
    try:
        yield f"/dev/fd/{reader}"
    finally:
        # The end of the reader ends a writer that waits for it.
        os.close(reader)
        thread.join()


def _feed(writer: int, data: bytes) -> None:
    with open(writer, "wb") as file:
        try:
            file.write(data)
            file.flush()
        except BrokenPipeError:
            return
