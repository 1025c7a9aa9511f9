"""Users who have signed in, with the SCRAM credentials of the cluster.

Signing in opens a connection with the credentials; the cluster verifies them, and its ACLs decide what the
user sees. Each user has views of their own, so that nothing is shown through the permissions of another one.
Sessions end with the sign-out, when they are not used, or with the process; there are at most `_MOST`.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from dataclasses import dataclass, field, replace
from typing import Final

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.settings import ClientSettings
from moldau.console.cluster.view import ClusterView
from moldau.console.settings import ConsoleSettings, user_settings
from moldau.console.web.call import Refused
from moldau.http.authentication.credentials import BASIC, Credentials
from moldau.network.failures import LoginFailed

COOKIE: Final = "moldau_console"
_MOST: Final = 200
_SIGN_IN_TIMEOUT_MS: Final = 8_000


class Account:
    """A user's connections to the clusters."""

    def __init__(self, user: str, settings: dict[str, ClientSettings], lag_window_s: float) -> None:
        self.user = user
        self._lag_window_s = lag_window_s
        self.settings = settings
        self.sessions = 0
        self._views: dict[str, ClusterView] = {}
        self._opening = asyncio.Lock()

    async def view(self, cluster: str) -> ClusterView:
        async with self._opening:
            if cluster not in self._views:
                view = ClusterView(cluster, self.settings[cluster], lag_window_s=self._lag_window_s)
                try:
                    await view.start()
                except KafkaError:
                    await view.close()
                    raise
                self._views[cluster] = view
            return self._views[cluster]

    async def close(self) -> None:
        for view in self._views.values():
            await view.close()
        self._views.clear()


@dataclass(slots=True)
class Session:
    account: Account
    #: Sent with every change, so that another page cannot send one.
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    used_s: float = 0.0


class Sessions:
    def __init__(self, settings: ConsoleSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._accounts: dict[str, Account] = {}
        #: The cookies of scripts that send user and password with every request, by a digest of these.
        self._scripts: dict[bytes, str] = {}
        self._key = secrets.token_bytes(32)
        # A guessed password takes a connection to the cluster: a few at a time.
        self._signing_in = asyncio.Semaphore(4)

    def find(self, cookie: str | None) -> Session | None:
        session = self._sessions.get(cookie or "")
        if session is None:
            return None
        now = self._clock.monotonic()
        if now - session.used_s > self._settings.session_timeout_ms / 1000:
            return None
        session.used_s = now
        return session

    async def sign_in(self, user: str, password: str) -> str:
        """Return the cookie of a new session; `Refused` if the cluster refuses the credentials."""
        await self.sweep()
        if len(self._sessions) >= _MOST:
            raise Refused(503, "Too many users have signed in; try again later.")
        settings = {
            name: user_settings(properties, user, password)
            for name, properties in self._settings.clusters.items()
        }
        async with self._signing_in:
            await _verify(next(iter(settings.values())))
        account = self._accounts.get(user)
        if account is None or account.settings != settings:
            # After a change of the password, sessions with the old one keep their connections.
            account = self._accounts[user] = Account(user, settings, self._settings.lag_window_s)
        account.sessions += 1
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = Session(account, used_s=self._clock.monotonic())
        return cookie

    async def of_script(self, credentials: Credentials) -> Session | None:
        """Return the session of a user and password, which are verified once per session."""
        if credentials.scheme != BASIC:
            return None
        text = f"{credentials.user}\0{credentials.secret}".encode()
        digest = hmac.digest(self._key, text, "sha256")
        session = self.find(self._scripts.get(digest))
        if session is None:
            cookie = self._scripts[digest] = await self.sign_in(credentials.user, credentials.secret)
            session = self.find(cookie)
        return session

    async def sign_out(self, cookie: str | None) -> None:
        session = self._sessions.pop(cookie or "", None)
        if session is None:
            return
        account = session.account
        account.sessions -= 1
        if account.sessions == 0:
            if self._accounts.get(account.user) is account:
                del self._accounts[account.user]
            await account.close()

    async def sweep(self) -> None:
        """End the sessions that are not used."""
        oldest = self._clock.monotonic() - self._settings.session_timeout_ms / 1000
        for cookie in [each for each, session in self._sessions.items() if session.used_s < oldest]:
            await self.sign_out(cookie)
        known = self._scripts.items()
        self._scripts = {digest: cookie for digest, cookie in known if cookie in self._sessions}

    async def close(self) -> None:
        for cookie in list(self._sessions):
            await self.sign_out(cookie)


async def _verify(settings: ClientSettings) -> None:
    cluster = Cluster(replace(settings, request_timeout_ms=_SIGN_IN_TIMEOUT_MS))
    try:
        await cluster.refresh()
    except LoginFailed:
        raise Refused(401, "The cluster refuses this user and password.") from None
    except KafkaError as error:
        raise Refused(503, f"The cluster cannot be reached: {error}") from error
    finally:
        cluster.close()
