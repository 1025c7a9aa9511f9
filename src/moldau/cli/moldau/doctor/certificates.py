"""Explain why the certificate of a server is not accepted: its names, its validity and its issuer."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime

from moldau.cli.moldau.doctor.findings import Finding, Level
from moldau.client.wire.settings import Address


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    subject: str
    issuer: str
    #: The host names and addresses it is valid for.
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime

    @classmethod
    def read(cls, der: bytes) -> ServerCertificate:
        from cryptography import x509

        certificate = x509.load_der_x509_certificate(der)
        try:
            found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            hosts = found.get_values_for_type(x509.DNSName)
            names = (*hosts, *map(str, found.get_values_for_type(x509.IPAddress)))
        except x509.ExtensionNotFound:
            names = ()
        return cls(
            certificate.subject.rfc4514_string(),
            certificate.issuer.rfc4514_string(),
            names,
            certificate.not_valid_before_utc,
            certificate.not_valid_after_utc,
        )

    def is_for(self, host: str) -> bool:
        """Return whether a host name or address is one of the names; `*` stands for the first label."""
        wanted = host.rstrip(".").lower()
        for name in (each.lower() for each in self.names):
            wildcard = name.startswith("*.") and not _is_address(host)
            if name == wanted or (wildcard and wanted.partition(".")[2] == name[2:]):
                return True
        return False

    def __str__(self) -> str:
        names = ", ".join(self.names) or "none"
        return f"the certificate of {self.subject or 'an empty subject'} (names: {names})"


def describe(certificate: ServerCertificate, at: Address) -> Finding:
    """Return the finding about a certificate that is accepted."""
    days = (certificate.not_after - datetime.now(UTC)).days
    if days < 30:
        return Finding(
            Level.NOTE,
            f"{at} shows {certificate}; it expires on {certificate.not_after:%Y-%m-%d}, in {days} days.",
            "Renew it: replaced stores take effect without a restart.",
        )
    return Finding(
        Level.GOOD, f"{at} shows {certificate}, valid until {certificate.not_after:%Y-%m-%d}; it is accepted."
    )


def explain(certificate: ServerCertificate | None, at: Address, reason: str) -> Finding:
    """Return the finding about a failed TLS handshake; `reason` is the sentence of the connection."""
    if certificate is None:
        return _refused(at, reason)
    now = datetime.now(UTC)
    if now > certificate.not_after:
        return Finding(
            Level.PROBLEM,
            f"{at} shows {certificate}, which has expired on {certificate.not_after:%Y-%m-%d %H:%M} UTC.",
            "Renew it on the broker: replaced stores take effect without a restart.",
        )
    if now < certificate.not_before:
        return Finding(
            Level.PROBLEM,
            f"{at} shows {certificate}, which is not yet valid: it begins on "
            f"{certificate.not_before:%Y-%m-%d %H:%M} UTC, and this machine has {now:%Y-%m-%d %H:%M} UTC.",
            "Compare the clocks of the machines.",
        )
    if "truststore" in reason:
        return Finding(
            Level.PROBLEM,
            f"{at} shows {certificate}, signed by {certificate.issuer or 'an unnamed CA'}, which this client "
            "does not trust.",
            "Add the certificate of this CA to the client's truststore: ssl.truststore.location, or "
            "ssl.truststore.type=PEM and ssl.truststore.certificates.",
        )
    if not certificate.is_for(at.host):
        return Finding(
            Level.PROBLEM,
            f"{at} shows {certificate}, which does not contain the name {at.host}.",
            "Connect to one of these names, or issue a certificate with the subject alternative name "
            f"{at.host}. An empty ssl.endpoint.identification.algorithm turns the check off, and with it the "
            "protection against impostors.",
        )
    return _refused(at, reason)


def _refused(at: Address, reason: str) -> Finding:
    if "client certificate" in reason or "client's certificate" in reason:
        return Finding(
            Level.PROBLEM,
            f"{at} refuses the TLS connection: {reason}.",
            "Set ssl.keystore.location to a key and certificate signed by a CA in the broker's truststore.",
        )
    return Finding(
        Level.PROBLEM,
        f"The TLS handshake with {at} failed: {reason}.",
        "Compare ssl.enabled.protocols and ssl.cipher.suites of client and broker; the broker's log says "
        "more.",
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
