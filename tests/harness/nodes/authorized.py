"""Settings of nodes with an authorizer: clients log in with SASL PLAIN, `admin` is a super user."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.security.acl.loading import STANDARD_AUTHORIZER

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
