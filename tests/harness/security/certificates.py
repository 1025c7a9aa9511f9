"""The certificates of a test: an authority, a server and clients, as the stores that configs name.

`Certificates(folder)` creates them; `server_properties` are the `ssl.*` configs of a node, and
`librdkafka`, `python` and `java` those of clients.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from moldau.security.tls.authority import Authority, IssuedCertificate

HOSTS = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """One authority with the certificate of a server and of a client `CN=alice`."""

    def __init__(self, folder: Path, *, hosts: tuple[str, ...] = HOSTS, client: str = "alice") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.authority = Authority.create("Test CA")
        #: The trusted certificates, in PEM.
        self.ca = self.authority.write_trust_pem(folder / "ca.pem")
        self.server = self.key_store("server", hosts)
        self.client = self.key_store(client)

    def key_store(self, name: str, hosts: tuple[str, ...] = ()) -> Path:
        """Issue a certificate `CN=name` and write key and chain as PEM."""
        return self.issue(name, hosts).write_pem(self.folder / f"{name}.pem")

    def issue(self, name: str, hosts: tuple[str, ...] = ()) -> IssuedCertificate:
        return self.authority.issue(name, hosts)

    def server_properties(self, client_auth: str = "none") -> dict[str, str]:
        """Return the configs of a node, for listeners and for its connections to other nodes."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.server),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "ssl.client.auth": client_auth,
        }

    def java(self, *, mutual: bool = False) -> dict[str, str]:
        """Return the configs of a Java client and of Moldau's own clients and tools."""
        properties = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }
        if mutual:
            properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.client)}
        return properties

    def librdkafka(self, *, mutual: bool = False) -> dict[str, str]:
        configs = {"security.protocol": "SSL", "ssl.ca.location": str(self.ca)}
        if mutual:
            configs |= {"ssl.certificate.location": str(self.client), "ssl.key.location": str(self.client)}
        return configs

    def python(self, *, mutual: bool = False) -> ssl.SSLContext:
        """Return the context for kafka-python and aiokafka."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if mutual:
            context.load_cert_chain(str(self.client))
        return context
