"""A node with a listener of every security protocol, and the properties of clients for each of them.

| listener | protocol | |
|---|---|---|
| PLAINTEXT | PLAINTEXT | for the tests' own preparation |
| SASL_PLAINTEXT, SASL_SSL | the same | PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER (unsecured) |
| SESSIONS | SASL_PLAINTEXT | the same mechanisms; sessions end after `SESSION_MS` (KIP-368) |
| SSL | SSL | client certificates are not asked for |
| MUTUAL | SSL | client certificates are required |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moldau.client import AdminClient, checked
from moldau.client.admin.scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from moldau.security.tls.authority import Authority, IssuedCertificate
from moldau.testing import Cluster
from tests.harness.apache.node import free_port
from tests.harness.security.secured_node import MECHANISMS, SCRAM_MECHANISMS, USERS, jaas

LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "SESSIONS": "SASL_PLAINTEXT",
    "SSL": "SSL",
    "MUTUAL": "SSL",
}
SESSION_MS = 1500
_MECHANISM_IDS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


@dataclass(frozen=True, slots=True)
class SecuredListeners:
    """The running node. `folder` contains `trust.pem`, `trust.p12`, `client.pem` and `client.p12`."""

    ports: Mapping[str, int]
    folder: Path
    authority: Authority

    def address(self, listener: str = "PLAINTEXT") -> str:
        return f"localhost:{self.ports[listener]}"

    def properties(
        self, listener: str, mechanism: str = "PLAIN", user: str = "alice", **more: str
    ) -> dict[str, str]:
        """Return the properties of a client; keywords are further ones, with `_` for dots."""
        protocol = LISTENERS[listener]
        found = {"bootstrap.servers": self.address(listener), "security.protocol": protocol}
        if protocol.startswith("SASL_"):
            found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas(mechanism, user)}
        if protocol.endswith("SSL"):
            found |= pem_trust(self.folder / "trust.pem")
        if listener == "MUTUAL":
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.folder / "client.pem")}
        return found | {name.replace("_", "."): value for name, value in more.items()}


def pem_trust(path: Path) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(path)}


def write_properties(path: Path, properties: Mapping[str, str]) -> str:
    """Write a properties file and return its name."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


@contextmanager
def every_listener(
    folder: Path,
    certificate: IssuedCertificate | None = None,
    authority: Authority | None = None,
    config: Mapping[str, str] | None = None,
) -> Iterator[SecuredListeners]:
    """Run a node; `certificate` replaces the one of its TLS listeners."""
    authority = authority or Authority.create("Test CA")
    issued = certificate or authority.issue("broker", ["localhost"])
    issued.write_pem(folder / "broker.pem")
    authority.write_trust_pem(folder / "trust.pem")
    authority.write_trust_pkcs12(folder / "trust.p12", "store-secret")
    client = authority.issue("carol", usages=["client"])
    client.write_pem(folder / "client.pem")
    client.write_pkcs12(folder / "client.p12", "store-secret")
    ports = {name: free_port() for name in (*LISTENERS, "CONTROLLER")}
    with Cluster(config={**_config(folder, ports), **(config or {})}):
        found = SecuredListeners(ports, folder, authority)
        _add_scram_users(found)
        yield found


def _config(folder: Path, ports: Mapping[str, int]) -> dict[str, str]:
    protocols = {**LISTENERS, "CONTROLLER": "PLAINTEXT"}
    config = {
        "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"localhost:{ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "delegation.token.secret.key": "token-secret",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        **pem_trust(folder / "trust.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.sessions.connections.max.reauth.ms": str(SESSION_MS),
    }
    for listener in ("sasl_plaintext", "sasl_ssl", "sessions"):
        for mechanism in MECHANISMS:
            name = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
            config[name] = jaas(mechanism, server=True)
    return config


def _add_scram_users(node: SecuredListeners) -> None:
    with AdminClient(node.address()) as admin:
        for mechanism in SCRAM_MECHANISMS:
            users = [
                UserScramCredentialUpsertion(
                    user, ScramCredentialInfo(_MECHANISM_IDS[mechanism], 4096), password
                )
                for user, password in USERS.items()
            ]
            checked(admin.alter_user_scram_credentials(users))
