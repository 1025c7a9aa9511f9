"""The login with OpenID Connect: authorization code flow with PKCE.

    /login/oidc      → a cookie with state, nonce and code verifier; redirect to the identity provider
    /login/callback  ← the provider sends the browser back, with a code and the state

The session's cookie is `SameSite=Strict`; browsers do not send such cookies with the redirect from the
provider. The login has a cookie of its own, `SameSite=Lax`, which is valid for minutes and signed with a key
of this process: the server stores nothing for logins that were only begun.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qs

from moldau.base.clock import Clock
from moldau.console.login.provider import IdentityProvider, LoginRefused, ProviderUnavailable
from moldau.console.login.redirects import safe_path
from moldau.console.login.roles import Role
from moldau.console.login.settings import CALLBACK, LOGIN, OidcSettings

LIFETIME_S: Final = 600
_THREADS: Final = 4
_MAX_CODE: Final = 4096


T = TypeVar("T")


class Begun(NamedTuple):
    """The URL of the provider, and the value of the cookie."""

    url: str
    cookie: str


class SignedIn(NamedTuple):
    user: str
    #: None: no claim of the user grants a role.
    role: Role | None
    #: Where to continue.
    page: str


class _Pending(NamedTuple):
    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    page: str
    expires_s: float


class OidcLogin:
    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._provider = IdentityProvider(settings, clock)
        self._key = secrets.token_bytes(32)
        # Threads of its own: a provider that does not answer holds up nothing else.
        self._threads = ThreadPoolExecutor(_THREADS, "oidc")

    async def check(self) -> None:
        """`ProviderUnavailable` if users cannot sign in."""
        await self._in_thread(self._provider.check)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def begin(self, base_url: str, page: str, *, again: bool) -> Begun:
        """Begin a login that continues at `page`; `again`: the provider asks for the user's password."""
        pending = _Pending(
            secrets.token_urlsafe(24),
            secrets.token_urlsafe(24),
            secrets.token_urlsafe(48),
            (self._settings.redirect_base or base_url) + CALLBACK,
            page,
            self._clock.monotonic() + LIFETIME_S,
        )
        challenge = base64.urlsafe_b64encode(hashlib.sha256(pending.verifier.encode()).digest())
        fields = {
            "redirect_uri": pending.redirect_uri,
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": challenge.rstrip(b"=").decode(),
        }
        if again:
            fields["prompt"] = "login"
        url = await self._in_thread(self._provider.authorization_url, fields)
        return Begun(url, self._signed(pending))

    async def sign_out_url(self, base_url: str) -> str | None:
        """Return where the user's session at the provider ends; None if it does not offer that."""
        return_url = (self._settings.redirect_base or base_url) + LOGIN
        try:
            return await self._in_thread(self._provider.sign_out_url, return_url)
        except ProviderUnavailable:
            return None

    async def complete(self, query: str, cookie: str) -> SignedIn:
        """Check the provider's answer; `LoginRefused` or `ProviderUnavailable` if it cannot be used."""
        fields = _fields(query)
        pending = self._pending(cookie)
        state = fields.get("state", "").encode()
        if pending is None or not hmac.compare_digest(state, pending.state.encode()):
            raise LoginRefused("This login was not begun here, or has expired.")
        if "error" in fields:
            detail = fields.get("error_description", "")[:300]
            reason = f"{fields['error'][:100]}: {detail}" if detail else fields["error"][:100]
            raise LoginRefused(f"The identity provider refuses the login: {reason}")
        code = fields.get("code", "")
        if not code or len(code) > _MAX_CODE:
            raise LoginRefused("The identity provider sent no code.")
        claims = await self._in_thread(
            self._provider.claims, code, pending.verifier, pending.redirect_uri, pending.nonce
        )
        return SignedIn(self._user(claims), self._settings.rules.role(claims), safe_path(pending.page))

    @property
    def accepts_tokens(self) -> bool:
        """Whether scripts can send access tokens."""
        return bool(self._settings.expected_audiences)

    async def bearer(self, token: str) -> tuple[str, Role | None, int]:
        """Check a script's access token; return its user and role, and when it expires in ms since 1970."""
        claims, expires_at_ms = await self._in_thread(self._provider.bearer_claims, token)
        return self._user(claims), self._settings.rules.role(claims), expires_at_ms

    @property
    def claim(self) -> str:
        """The claim with the roles, for messages."""
        return self._settings.rules.claim

    @property
    def secure(self) -> bool:
        """Whether browsers reach the console by https, even if a proxy connects to it by http."""
        return self._settings.redirect_base.startswith("https:")

    def _user(self, claims: Mapping[str, Any]) -> str:
        for name in (self._settings.user_claim, "sub"):
            value = claims.get(name)
            if isinstance(value, str) and value.strip():
                # JSON can contain lone surrogates, which no page can show.
                return value.strip()[:256].encode("utf-8", "replace").decode()
        raise LoginRefused("The id token does not name the user.")

    def _signed(self, pending: _Pending) -> str:
        body = base64.urlsafe_b64encode(json.dumps(pending).encode()).decode()
        return f"{body}.{self._signature(body)}"

    def _signature(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), hashlib.sha256).hexdigest()

    def _pending(self, cookie: str) -> _Pending | None:
        body, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(body).encode()):
            return None
        pending = _Pending(*json.loads(base64.urlsafe_b64decode(body)))
        return pending if self._clock.monotonic() < pending.expires_s else None


def _fields(query: str) -> dict[str, str]:
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return {}
    # A field that is sent twice is not one of the provider.
    return {name: values[0] for name, values in found.items() if len(values) == 1}
