"""A node with every kind of listener, run by Apache Kafka or by Moldau with the same properties.

| listener | protocol | |
|---|---|---|
| SASL_PLAINTEXT, SASL_SSL | the same | PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER (unsecured) |
| SESSIONS | SASL_PLAINTEXT | PLAIN, SCRAM-SHA-256 and OAUTHBEARER, with sessions that end (KIP-368) |
| JKS | SSL | client certificates required, mapped to the common name |
| PKCS12 | SSL | client certificates required, not mapped |
| PEM | SSL | client certificates requested |
| CONTROLLER | SASL_PLAINTEXT | PLAIN |

ACLs decide what users may do; `admin` is a super user.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.harness.apache.node import free_port
from tests.harness.apache.shared_folder import SharedFolder
from tests.harness.security.keytool import BROKER_NAME, Stores

ADMIN = "admin"
#: Users of PLAIN and of both SCRAM mechanisms, with their passwords.
USERS = {ADMIN: "admin-secret", "alice": "alice-secret", "bob": "bob-secret", "eve": "eve-secret"}
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM_MECHANISMS, "OAUTHBEARER")
SASL_LISTENERS = ("SASL_PLAINTEXT", "SASL_SSL")
SESSION_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")
SESSION_MS = 2500
STORE_LISTENERS = ("JKS", "PKCS12", "PEM")
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_MODULES = "org.apache.kafka.common.security"
_CLIENT_AUTHENTICATION = {"JKS": "required", "PKCS12": "required", "PEM": "requested"}

Setting = str | int | bool


def jaas(mechanism: str, user: str = ADMIN, password: str | None = None, *, server: bool = False) -> str:
    """Return the JAAS line of a client, or of a server that accepts `USERS`."""
    secret = USERS.get(user, "") if password is None else password
    if mechanism == "OAUTHBEARER":
        claim = "" if server else f' unsecuredLoginStringClaim_sub="{user}"'
        return f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required{claim};"
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    options = f'username="{user}" password="{secret}"'
    if server and mechanism == "PLAIN":
        options += "".join(f' user_{name}="{each}"' for name, each in USERS.items())
    return f"{_MODULES}.{module} required {options};"


def scram_options() -> list[str]:
    """Return the options of `kafka-storage format` that add the users."""
    return [
        word
        for mechanism in SCRAM_MECHANISMS
        for user, password in USERS.items()
        for word in ("--add-scram", f"{mechanism}=[name={user},password={password},iterations=4096]")
    ]


class SecuredNode:
    def __init__(
        self, folder: Path, libs: Path, stores: Stores | None, config: Mapping[str, Setting] | None = None
    ) -> None:
        """Without `stores`, the node has no listeners with TLS."""
        secured = ("SASL_SSL", *STORE_LISTENERS) if stores is not None else ()
        names = ("SASL_PLAINTEXT", "SESSIONS", *secured, "CONTROLLER")
        self.ports = {name: free_port() for name in names}
        self._stores = stores
        self.shared = SharedFolder(folder, libs, {**self._properties(), **(config or {})})

    @property
    def stores(self) -> Stores:
        assert self._stores is not None, "the node has no TLS"
        return self._stores

    def start(self, software: str, *, formatted: bool = False) -> SecuredNode:
        if not formatted:
            self.shared.format(software, *scram_options())
        self.shared.start(software)
        return self

    def address(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    def __enter__(self) -> SecuredNode:
        return self

    def __exit__(self, *_: object) -> None:
        self.shared.__exit__()

    def _properties(self) -> dict[str, Setting]:
        protocols = {name: "SSL" if name in STORE_LISTENERS else name for name in self.ports}
        protocols["CONTROLLER"] = protocols["SESSIONS"] = "SASL_PLAINTEXT"
        return {
            "listeners": ",".join(f"{name}://localhost:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
            "controller.quorum.bootstrap.servers": f"localhost:{self.ports['CONTROLLER']}",
            "inter.broker.listener.name": "SASL_SSL" if self._stores else "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sessions.sasl.enabled.mechanisms": ",".join(SESSION_MECHANISMS),
            "listener.name.sessions.connections.max.reauth.ms": SESSION_MS,
            "delegation.token.secret.key": "token-secret",
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:{ADMIN};User:{BROKER_NAME}",
            **self._jaas(),
            **(self._store_settings(self._stores) if self._stores else {}),
        }

    def _jaas(self) -> dict[str, str]:
        enabled = {
            **dict.fromkeys((name for name in SASL_LISTENERS if name in self.ports), MECHANISMS),
            "SESSIONS": SESSION_MECHANISMS,
            "CONTROLLER": ("PLAIN",),
        }
        return {
            f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config": jaas(
                mechanism, server=True
            )
            for listener, mechanisms in enabled.items()
            for mechanism in mechanisms
        }

    def _store_settings(self, stores: Stores) -> dict[str, str]:
        # Each listener has its own: the password of a store of the node would apply to the PEM files as well.
        settings = {}
        for listener in ("SASL_SSL", *STORE_LISTENERS):
            kind = listener if listener in STORE_LISTENERS else "PKCS12"
            own = {
                **stores.settings("broker", kind),
                "ssl.client.auth": _CLIENT_AUTHENTICATION.get(listener, "none"),
            }
            settings |= {f"listener.name.{listener.lower()}.{name}": value for name, value in own.items()}
        settings["listener.name.jks.ssl.principal.mapping.rules"] = "RULE:^CN=([^,]*),.*$/$1/,DEFAULT"
        return settings
