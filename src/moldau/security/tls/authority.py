"""A certificate authority for development clusters and tests.

It creates the certificates of servers and clients and writes them as PEM and PKCS12 stores that Kafka, Java
clients and librdkafka read. Files with private keys are readable by their owner only. Not for production: the
key of the authority is kept on the same machine.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
KeyType = Literal["EC", "RSA"]

_OWNER_ONLY = 0o600
_RSA_BITS = 2048
#: Certificates are valid from a moment ago, because the clocks of two machines may differ.
_CLOCK_SKEW = timedelta(hours=1)
_VALIDITY = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate with its private key, and the certificates that lead to the authority."""

    certificate: x509.Certificate
    key: PrivateKey = field(repr=False)
    #: Intermediate authorities, nearest first; the root is not included.
    intermediates: tuple[x509.Certificate, ...] = ()

    @property
    def chain_pem(self) -> str:
        return "".join(map(_pem, (self.certificate, *self.intermediates)))

    def key_pem(self, password: str | None = None) -> str:
        """Return the key in PKCS8, encrypted if a password is given."""
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        pem = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )
        return pem.decode("ascii")

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """Write key and chain as one PEM key store."""
        write_private(path, (self.key_pem(password) + self.chain_pem).encode("ascii"))
        return path

    def write_pkcs12(self, path: Path, password: str, name: str = "moldau") -> Path:
        encryption = serialization.BestAvailableEncryption(password.encode())
        store = pkcs12.serialize_key_and_certificates(
            name.encode(), self.key, self.certificate, self.intermediates, encryption
        )
        write_private(path, store)
        return path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority: its own certificate and key."""

    certificate: x509.Certificate
    key: PrivateKey = field(repr=False)
    #: The authorities above this one up to the root, nearest first, without the root.
    intermediates: tuple[x509.Certificate, ...] = ()

    @classmethod
    def create(cls, name: str = "Moldau development CA", *, key_type: KeyType = "EC") -> Authority:
        key = _new_key(key_type)
        subject = distinguished_name(name)
        return cls(_sign(_authority_builder(subject, subject, key), key), key)

    @classmethod
    def load(cls, path: Path) -> Authority:
        """Read an authority that `write` has written."""
        data = path.read_bytes()
        key = serialization.load_pem_private_key(data, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError(f"{path} contains a key of another type than EC or RSA")
        return cls(x509.load_pem_x509_certificate(data), key)

    @property
    def certificate_pem(self) -> str:
        return _pem(self.certificate)

    def write(self, path: Path) -> Path:
        """Write certificate and key, for `load`."""
        return IssuedCertificate(self.certificate, self.key).write_pem(path)

    def write_trust_pem(self, path: Path) -> Path:
        path.write_text(self.certificate_pem, encoding="ascii")
        return path

    def write_trust_pkcs12(self, path: Path, password: str) -> Path:
        """Write a trust store whose entry Java takes for a trusted certificate."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        entry = pkcs12.PKCS12Certificate(self.certificate, b"authority")
        write_private(path, pkcs12.serialize_java_truststore([entry], encryption))
        return path

    def intermediate(self, name: str) -> Authority:
        key = _new_key("EC")
        builder = _authority_builder(distinguished_name(name), self.certificate.subject, key)
        certificate = _sign(builder, self.key)
        return Authority(certificate, key, (certificate, *self.intermediates))

    def issue(
        self,
        subject: str | x509.Name,
        hosts: Sequence[str] = (),
        *,
        key_type: KeyType = "EC",
        usages: Iterable[Literal["server", "client"]] = ("server", "client"),
        not_before: datetime | None = None,
        not_after: datetime | None = None,
    ) -> IssuedCertificate:
        """Issue a certificate; a subject of type str is the common name, `hosts` are names and addresses."""
        key = _new_key(key_type)
        name = distinguished_name(subject) if isinstance(subject, str) else subject
        builder = _builder(name, self.certificate.subject, key, not_before, not_after)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(issuer_key, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([_USAGES[each] for each in usages]), False)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(list(map(_general_name, hosts))), not name.rdns
            )
        return IssuedCertificate(_sign(builder, self.key), key, self.intermediates)


_USAGES = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


def distinguished_name(common_name: str, **attributes: str) -> x509.Name:
    """Return a name such as `O=…, CN=common_name`; keywords are attributes of NameOID in lower case."""
    parts = [x509.NameAttribute(getattr(NameOID, key.upper()), text) for key, text in attributes.items()]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, replacing an existing one in a single step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with open(descriptor, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def _new_key(key_type: KeyType) -> PrivateKey:
    if key_type == "RSA":
        return rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS)
    return ec.generate_private_key(ec.SECP256R1())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: PrivateKey,
    not_before: datetime | None = None,
    not_after: datetime | None = None,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before or now - _CLOCK_SKEW)
        .not_valid_after(not_after or now + _VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _authority_builder(subject: x509.Name, issuer: x509.Name, key: PrivateKey) -> x509.CertificateBuilder:
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _builder(subject, issuer, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
    )


def _sign(builder: x509.CertificateBuilder, key: PrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")
