"""Users of a cluster with SCRAM: verifying a password, and the connections of a user.

Signing in opens a connection with the credentials; the cluster verifies them, and its ACLs decide what the
user sees. Each user has a view of their own, so that nothing is shown through the permissions of another one.
Sessions of one user share it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from moldau.base.errors import KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.security import PLAIN_TEXT
from moldau.client.wire.settings import ClientSettings
from moldau.console.cluster.view import ClusterView
from moldau.console.web.call import Refused
from moldau.network.failures import LoginFailed

_TIMEOUT_MS: Final = 8_000
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(eq=False, slots=True)
class Account:
    """A user's view of a cluster."""

    cluster: str
    user: str
    settings: ClientSettings
    view: ClusterView
    sessions: int = 0
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class Accounts:
    def __init__(self, lag_window_s: float) -> None:
        self._lag_window_s = lag_window_s
        self._accounts: dict[tuple[str, str], Account] = {}
        # A guessed password takes a connection to the cluster: a few at a time.
        self._verifying = asyncio.Semaphore(4)

    async def open(
        self,
        cluster: str,
        user: str,
        settings: ClientSettings,
        attempt: AbstractContextManager[None] | None = None,
    ) -> Account:
        """Verify credentials and return the account for one more session; `Refused` if they are wrong.

        `attempt` is entered when the password is tested, and may refuse that.
        """
        async with self._verifying:
            with attempt or nullcontext():
                await _verify(settings)
        account = self._accounts.get((cluster, user))
        if account is None or account.settings != settings:
            # After a change of the password, sessions with the old one keep their connections.
            view = ClusterView(cluster, settings, lag_window_s=self._lag_window_s)
            account = Account(cluster, user, settings, view)
            self._accounts[cluster, user] = account
        account.sessions += 1
        try:
            async with account.opening:
                await account.view.start()
        except KafkaError as error:
            await self.release(account)
            raise Refused(503, f"The cluster cannot be read: {error}") from error
        return account

    async def release(self, account: Account) -> None:
        """Close the connections after the last session."""
        account.sessions -= 1
        if account.sessions:
            return
        if self._accounts.get((account.cluster, account.user)) is account:
            del self._accounts[account.cluster, account.user]
        await account.view.close()


def user_settings(properties: Mapping[str, str], user: str, password: str) -> ClientSettings:
    """Return the connection settings of a user who signs in."""
    given = {
        name: value
        for name, value in properties.items()
        if name not in ("sasl.jaas.config", "sasl.username", "sasl.password")
    }
    given["sasl.jaas.config"] = (
        f'{_SCRAM_MODULE} required username="{_quoted(user)}" password="{_quoted(password)}";'
    )
    return ClientSettings.from_properties(given)


async def reachable(properties: Mapping[str, str]) -> str | None:
    """Return why a cluster cannot be reached; None if it answers. It needs no credentials."""
    try:
        settings = user_settings(properties, "console", "-")
        security = replace(settings.security, protocol="SSL") if settings.security.tls else PLAIN_TEXT
        cluster = Cluster(replace(settings, security=security, request_timeout_ms=_TIMEOUT_MS))
    except KafkaError as error:
        return str(error)
    try:
        # A connection begins with ApiVersions, which brokers answer before the login.
        await cluster.any_connection()
    except KafkaError as error:
        return str(error)
    finally:
        cluster.close()
    return None


async def _verify(settings: ClientSettings) -> None:
    cluster = Cluster(replace(settings, request_timeout_ms=_TIMEOUT_MS))
    try:
        await cluster.refresh()
    except LoginFailed:
        raise Refused(401, "The cluster refuses this user and password.") from None
    except KafkaError as error:
        raise Refused(503, f"The cluster cannot be reached: {error}") from error
    finally:
        cluster.close()


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
