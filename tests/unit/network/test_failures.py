"""What a failed connection means, in sentences."""

from __future__ import annotations

import ssl

import pytest

from moldau.network.failures import tls_reason


def verification_error(message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, f"certificate verify failed: {message}")
    error.verify_message = message
    return error


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("certificate has expired", "has expired"),
        ("certificate is not yet valid", "compare the clocks"),
        ("unable to get local issuer certificate", "not in the truststore"),
        ("self-signed certificate in certificate chain", "not in the truststore"),
        ("Hostname mismatch, certificate is not valid for 'h'.", "Hostname mismatch"),
    ],
)
def test_certificate_errors_name_the_cause(message: str, sentence: str) -> None:
    assert sentence in (tls_reason(verification_error(message)) or "")


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("WRONG_VERSION_NUMBER", "does not speak TLS"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "requires a client certificate"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not trust the CA of this client's certificate"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "does not accept this client's certificate"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "no TLS version in common"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "no cipher suite in common"),
    ],
)
def test_alerts_name_the_remedy(reason: str, sentence: str) -> None:
    error = ssl.SSLError(1, f"[SSL: {reason}] {reason.lower().replace('_', ' ')} (_ssl.c:992)")
    assert sentence in (tls_reason(error) or "")


def test_other_failures_are_not_about_tls() -> None:
    assert tls_reason(None) is None
    assert tls_reason(ConnectionResetError()) is None
