"""Settings of nodes with an authorizer: clients log in with SASL PLAIN, `admin` is a super user."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import KafkaError
from moldau.client.admin.client import AdminClient
from moldau.client.wire.settings import ClientSettings
from moldau.security.acl.loading import STANDARD_AUTHORIZER
from moldau.testing import Cluster
from tests.harness.waiting import eventually

ADMIN = "admin"
_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def password_of(user: str) -> str:
    return f"{user}-secret"


def authorized_nodes(users: Iterable[str], **more: str) -> dict[str, str]:
    """Return the settings; controllers trust each other (PLAINTEXT, so `User:ANONYMOUS` is a super user)."""
    logins = " ".join(f'user_{user}="{password_of(user)}"' for user in (ADMIN, *users))
    jaas = f'{_LOGIN_MODULE} required username="{ADMIN}" password="{password_of(ADMIN)}" {logins};'
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
    }
    return settings | {name.replace("_", "."): value for name, value in more.items()}


def authorized_cluster(users: Iterable[str], **more: str) -> dict[str, str]:
    """Return the settings of nodes that log in to controllers, too, as the super user `admin`."""
    settings = authorized_nodes(users, **more)
    login = settings["listener.name.plaintext.plain.sasl.jaas.config"]
    return settings | {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": login,
        "super.users": f"User:{ADMIN}",
    }


def librdkafka_login(user: str) -> dict[str, str]:
    """Return the settings with which librdkafka logs in."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password_of(user),
    }


def java_login(user: str) -> dict[str, str]:
    """Return the settings with which Java's clients and Moldau's tools log in."""
    jaas = f'{_LOGIN_MODULE} required username="{user}" password="{password_of(user)}";'
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}


def admin_client(address: str, user: str = ADMIN, *, controllers: bool = False) -> AdminClient:
    """Return Moldau's admin client, logged in to brokers or to controllers."""
    servers = {"bootstrap.controllers" if controllers else "bootstrap.servers": address}
    return AdminClient(ClientSettings.from_properties(servers | java_login(user)))


class AuthorizedCluster(Cluster):
    """Nodes with the settings of `authorized_cluster`."""

    def wait_for_brokers(self, timeout: float = 30.0) -> None:
        awake = [node for node in self.brokers if node.running and not node.paused]

        def reported(port: int) -> set[int]:
            try:
                with admin_client(f"127.0.0.1:{port}") as admin:
                    return {node.id for node in admin.describe_cluster().nodes}
            except KafkaError:
                return set()

        for node in awake:
            eventually(lambda port=node.port: reported(port) == {each.id for each in awake}, timeout=timeout)
