"""The security of a client: TLS and SASL, from Kafka's property names or librdkafka's.

`SecuritySettings` holds the properties as they were given. It is compared, hashed and sent to other processes
as part of `ClientSettings`; stores, tokens and JAAS files are read where the connections are opened. Values
are secrets: `repr` shows the protocol only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.connector import PLAINTEXT, ClientSecurity, Connector, SaslLogin
from moldau.security.jaas import LoginModule, client_modules
from moldau.security.system_properties import jaas_sections, system_properties

if TYPE_CHECKING:
    from ssl import SSLContext

    from moldau.security.sasl.clients import BeginClient
    from moldau.security.sasl.mechanism import SaslClient
    from moldau.security.tls.settings import TlsSettings

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: The default of `sasl.mechanism`.
DEFAULT_MECHANISM: Final = "GSSAPI"
_VERIFY = "enable.ssl.certificate.verification"
_PREFIXES = ("ssl.", "sasl.")
#: librdkafka's names of Kafka's properties.
_LIBRDKAFKA_NAMES = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
#: librdkafka's names of PEM files whose content is the value of one of Kafka's properties.
_LIBRDKAFKA_FILES = {
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
#: librdkafka's names that make a store a PEM store.
_LIBRDKAFKA_PEM = {
    "truststore": ("ssl.ca.location", "ssl.ca.pem"),
    "keystore": ("ssl.certificate.location", "ssl.certificate.pem"),
}


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    protocol: str = "PLAINTEXT"
    #: The properties that concern security, by Kafka's names, sorted.
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, check: bool = True) -> SecuritySettings:
        """Read the properties, and check the login unless `check` is false; stores are not opened yet.

        `KafkaError` names an invalid property.
        """
        protocol = str(properties.get("security.protocol") or "PLAINTEXT").strip().upper()
        if protocol not in PROTOCOLS:
            raise _invalid(f"security.protocol={protocol}: use one of {', '.join(PROTOCOLS)}")
        if protocol == "PLAINTEXT":
            return PLAIN_TEXT
        settings = cls(protocol, tuple(sorted(_security_properties(properties).items())))
        if settings.sasl and check:
            settings.check()
        return settings

    def check(self) -> None:
        """Raise a `KafkaError` if the mechanism or its credentials are invalid or missing."""
        self._exchanges()

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def mechanism(self) -> str:
        return (self.get("sasl.mechanism") or DEFAULT_MECHANISM).strip()

    def get(self, name: str) -> str | None:
        """Return a property by Kafka's name; None if it is not set."""
        return dict(self.properties).get(name)

    def login_modules(self) -> Sequence[LoginModule]:
        """Return the JAAS entries of the login; none if librdkafka's `sasl.username` is used."""
        config = self.get("sasl.jaas.config")
        if config is None and self.get("sasl.username") is not None:
            return ()
        properties = system_properties()
        return client_modules(config, properties, jaas_sections(properties) if config is None else {})

    def connector(self) -> Connector:
        """Return what opens the connections of one client: they share the TLS context and the login."""
        if self.protocol == "PLAINTEXT":
            return PLAINTEXT
        shared = _Shared(self)
        return Connector(
            security=ClientSecurity(
                tls=shared.context if self.tls else None,
                sasl=SaslLogin(self.mechanism, shared.begin) if self.sasl else None,
            )
        )

    @property
    def verifies_certificates(self) -> bool:
        """False only with librdkafka's `enable.ssl.certificate.verification=false`."""
        return (self.get(_VERIFY) or "true").strip().lower() != "false"

    def tls_settings(self) -> TlsSettings:
        """Return the `ssl.*` properties, with the content of files that only librdkafka's names name."""
        content = {name: _read(name, path) for name, path in self.properties if name in _LIBRDKAFKA_FILES}
        known = dict(self.properties) | {_LIBRDKAFKA_FILES[name]: text for name, text in content.items()}
        from moldau.security.tls.settings import TlsSettings

        return TlsSettings.of(known.get)

    def context(self) -> SSLContext:
        """Read the stores and return the context of new connections."""
        settings = self.tls_settings()
        import ssl

        from moldau.security.tls.context import client_context

        context = client_context(settings)
        if not self.verifies_certificates:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _exchanges(self) -> BeginClient:
        from moldau.security.sasl.clients import sasl_client

        return sasl_client(self.mechanism, self.get)


#: Without TLS and SASL.
PLAIN_TEXT: Final = SecuritySettings()


class _Shared:
    """What the connections of one client share."""

    def __init__(self, settings: SecuritySettings) -> None:
        self._settings = settings
        self._context: SSLContext | None = None
        self._exchanges: BeginClient | None = None

    def context(self) -> SSLContext:
        if self._context is None:
            self._context = self._settings.context()
        return self._context

    def begin(self, host: str) -> SaslClient:
        if self._exchanges is None:
            self._exchanges = self._settings._exchanges()
        return self._exchanges(host)


def _security_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of TLS and SASL by Kafka's names; those win over librdkafka's."""
    found: dict[str, str] = {}
    for name, value in properties.items():
        if name.startswith(_PREFIXES) or name == _VERIFY:
            kafka_name = _LIBRDKAFKA_NAMES.get(name, name)
            if kafka_name == name or kafka_name not in properties:
                found[kafka_name] = str(value)
    return found | _librdkafka_values(found, properties)


def _librdkafka_values(found: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the changes to values that Kafka and librdkafka write differently."""
    changes: dict[str, str] = {}
    if (found.get("ssl.endpoint.identification.algorithm") or "").strip().lower() == "none":
        changes["ssl.endpoint.identification.algorithm"] = ""
    for store, names in _LIBRDKAFKA_PEM.items():
        if f"ssl.{store}.type" not in given and any(name in given for name in names):
            changes[f"ssl.{store}.type"] = "PEM"
    return changes


def _read(name: str, path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        raise _invalid(f"{name}: the file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _invalid(f"{name}: the file {path} is not PEM") from error


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
