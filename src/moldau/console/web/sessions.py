"""Sessions of users who have signed in, and the view of a cluster that belongs to each.

A session ends with the sign-out, when it is not used, at the end of its lifetime, or with the process. Pages
that update themselves do not use it. There are at most `_MAX_SESSIONS` sessions, `_MAX_OF_USER` of one user.

A user with a password sees each cluster through connections of their own. Without passwords (no login, or
OpenID Connect) all users share the console's views, and the role decides.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from moldau.base.clock import Clock
from moldau.client.wire.settings import ClientSettings
from moldau.console.cluster.view import ClusterView
from moldau.console.login.accounts import Account, Accounts, user_settings
from moldau.console.login.attempts import Attempts
from moldau.console.login.oidc import OidcLogin
from moldau.console.login.provider import LoginRefused, ProviderUnavailable
from moldau.console.login.roles import Role
from moldau.console.settings import ConsoleSettings, Login
from moldau.console.web.call import Refused
from moldau.http.authentication.credentials import BASIC, BEARER, Credentials

COOKIE: Final = "moldau_console"
_MAX_SESSIONS: Final = 500
_MAX_OF_USER: Final = 20


class OtherCredentials(Refused):
    """A cluster does not accept the credentials with which the user has signed in at another one."""

    def __init__(self, cluster: str) -> None:
        super().__init__(401, f"Sign in at the cluster {cluster} first: /login?cluster={cluster}.")
        self.cluster = cluster


@dataclass(eq=False, slots=True)
class Session:
    user: str
    role: Role = Role.ADMIN
    #: By cluster, those that have verified the user's password.
    accounts: dict[str, Account] = field(default_factory=dict)
    #: The same credentials for clusters that have not been asked yet.
    offered: dict[str, ClientSettings] = field(default_factory=dict, repr=False)
    #: Sent with every change, so that another page cannot send one.
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    begun_s: float = 0.0
    used_s: float = 0.0
    ended: bool = False
    #: When the token of a script expires, on the monotonic clock.
    until_s: float = math.inf
    #: A script sends its secret with every request, so that another page cannot send one in its name.
    script: bool = False
    opening: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    def user_at(self, cluster: str) -> str:
        account = self.accounts.get(cluster)
        return self.user if account is None else account.user


class Sessions:
    def __init__(
        self,
        settings: ConsoleSettings,
        views: Mapping[str, ClusterView],
        clock: Clock,
        oidc: OidcLogin | None = None,
    ) -> None:
        self._settings = settings
        self._oidc = oidc
        self._views = views
        self._clock = clock
        self._accounts = Accounts(settings.lag_window_s)
        self._attempts = Attempts(clock)
        self._sessions: dict[str, Session] = {}
        #: Cookies of scripts that send their password with every request, by its digest.
        self._scripts: dict[bytes, str] = {}
        self._key = secrets.token_bytes(32)

    def find(self, cookie: str | None, *, uses: bool = True) -> Session | None:
        """Return the session of a cookie; `uses`: the request is one of the user, not of a page by itself."""
        session = self._sessions.get(cookie or "")
        if session is None or self.is_over(session):
            return None
        if uses:
            session.used_s = self._clock.monotonic()
        return session

    async def sign_in(
        self, user: str, password: str, address: str, *, cluster: str = "", cookie: str | None = None
    ) -> str:
        """Verify a password at a cluster, by default the first, and return the cookie of the session.

        `cookie`: a session to which the cluster is added. `Refused` if the cluster refuses the credentials.
        """
        clusters = self._settings.clusters
        cluster = cluster or next(iter(clusters))
        self._check_attempt(user, address, beside_pending=False)
        settings = {name: user_settings(each, user, password) for name, each in clusters.items()}
        attempt = self._attempt(user, address)
        account = await self._accounts.open(cluster, user, settings[cluster], attempt)
        self._attempts.succeeded(user, address)
        session = self.find(cookie)
        if session is not None and cookie is not None:
            async with session.opening:
                if not session.ended and cluster not in session.accounts:
                    session.accounts[cluster] = account
                    return cookie
            # Another user, or the same one again: nothing of the session before is kept.
            await self.end(cookie)
        del settings[cluster]
        try:
            return await self.begin(Session(user, accounts={cluster: account}, offered=settings))
        except Refused:
            await self._accounts.release(account)
            raise

    def _check_attempt(self, user: str, address: str, *, beside_pending: bool) -> None:
        waiting = self._attempts.wait_s(user, address, beside_pending=beside_pending)
        if waiting:
            raise Refused(429, f"Too many failed logins; try again in {max(waiting, 1):.0f} seconds.")

    @contextmanager
    def _attempt(self, user: str, address: str) -> Iterator[None]:
        """Test a password: refused again at this time, because others have failed since the request began."""
        self._check_attempt(user, address, beside_pending=True)
        with self._attempts.pending(user, address):
            try:
                yield
            except Refused as refused:
                if refused.status == 401:
                    self._attempts.failed(user, address)
                raise

    async def begin(self, session: Session) -> str:
        """Add a session and return its cookie; `Refused` if there are too many."""
        await self.sweep()
        own = [cookie for cookie, each in self._sessions.items() if each.user == session.user]
        for cookie in own[: max(0, len(own) - _MAX_OF_USER + 1)]:
            await self.end(cookie)
        if len(self._sessions) >= _MAX_SESSIONS:
            raise Refused(503, "Too many users have signed in; try again later.")
        session.begun_s = session.used_s = self._clock.monotonic()
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = session
        return cookie

    async def of_script(self, credentials: Credentials, address: str) -> Session | None:
        """Return the session of a script that sends its password or its token; None if it is not accepted."""
        basic = credentials.scheme == BASIC and self._settings.login is Login.SCRAM
        if not basic and (
            credentials.scheme != BEARER or self._oidc is None or not self._oidc.accepts_tokens
        ):
            return None
        given = f"{credentials.user}\0{credentials.secret}".encode("utf-8", "surrogatepass")
        key = hmac.digest(self._key, given, "sha256")
        session = self.find(self._scripts.get(key))
        if session is None:
            if self._oidc is None:
                cookie = await self.sign_in(credentials.user, credentials.secret, address)
            else:
                cookie = await self._begin_with_token(self._oidc, credentials.secret)
            self._scripts = {each: known for each, known in self._scripts.items() if known in self._sessions}
            self._scripts[key] = cookie
            session = self._sessions[cookie]
        return session

    async def _begin_with_token(self, oidc: OidcLogin, token: str) -> str:
        try:
            user, role, expires_at_ms = await oidc.bearer(token)
        except LoginRefused as error:
            raise Refused(401, str(error)) from None
        except ProviderUnavailable as error:
            raise Refused(503, f"The identity provider cannot be used: {error}") from None
        if role is None:
            raise Refused(403, f"{user} has no role in this console.")
        remaining_s = (expires_at_ms - self._clock.time_ms()) / 1000
        until_s = self._clock.monotonic() + max(remaining_s, 0)
        return await self.begin(Session(user, role, until_s=until_s, script=True))

    async def view(self, cluster: str, session: Session | None) -> ClusterView:
        """Return the view of a cluster; `OtherCredentials` if the user has to sign in there."""
        if session is None or self._settings.login is not Login.SCRAM:
            return self._views[cluster]
        async with session.opening:
            account = session.accounts.get(cluster)
            if account is None:
                account = session.accounts[cluster] = await self._open_offered(cluster, session)
            return account.view

    async def _open_offered(self, cluster: str, session: Session) -> Account:
        settings = session.offered.get(cluster)
        if settings is None:
            raise OtherCredentials(cluster)
        try:
            account = await self._accounts.open(cluster, session.user, settings)
        except Refused as refused:
            if refused.status != 401:
                raise
            del session.offered[cluster]
            raise OtherCredentials(cluster) from None
        if session.ended:
            await self._accounts.release(account)
            raise OtherCredentials(cluster)
        return account

    async def end(self, cookie: str | None) -> None:
        session = self._sessions.pop(cookie or "", None)
        if session is None:
            return
        session.ended = True
        for account in session.accounts.values():
            await self._accounts.release(account)

    async def sweep(self) -> None:
        """End the sessions that are over."""
        for cookie in [each for each, session in self._sessions.items() if self.is_over(session)]:
            await self.end(cookie)

    async def close(self) -> None:
        for cookie in list(self._sessions):
            await self.end(cookie)

    def is_over(self, session: Session) -> bool:
        """Return whether a session has ended, or will with the next sweep."""
        now = self._clock.monotonic()
        settings = self._settings
        return (
            session.ended
            or now > session.until_s
            or now - session.used_s > settings.session_timeout_ms / 1000
            or now - session.begun_s > settings.session_lifetime_ms / 1000
        )
