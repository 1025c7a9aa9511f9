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
from moldau.client.wire.librdkafka_names import VERIFY, kafka_properties, with_pem_files
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
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"security.protocol={protocol}: use one of {', '.join(PROTOCOLS)}",
            )
        if protocol == "PLAINTEXT":
            return PLAIN_TEXT
        settings = cls(protocol, tuple(sorted(kafka_properties(properties).items())))
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
        return (self.get(VERIFY) or "true").strip().lower() != "false"

    def tls_settings(self) -> TlsSettings:
        """Return the `ssl.*` properties, with the content of files that only librdkafka's names name."""
        from moldau.security.tls.settings import TlsSettings

        return TlsSettings.of(with_pem_files(dict(self.properties)).get)

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
    """State that the connections of one client share."""

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
