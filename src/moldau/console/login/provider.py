"""The identity provider: its discovery document, the exchange of a code, and the checks of an id token.

Specifications: OpenID Connect Core 1.0 §3.1 and Discovery 1.0 §4, OAuth 2.0 (RFC 6749), PKCE (RFC 7636).
An id token is accepted if a key of the provider has signed it with an asymmetric algorithm that the
provider announces, and if it is of this issuer, for this client and this login (`nonce`), and not expired.
Redirects of the provider's endpoints are not followed.

All methods block: they run in a thread pool.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from moldau.base.clock import Clock
from moldau.base.json_log import event
from moldau.config.definition import ConfigError
from moldau.console.login.settings import OidcSettings, checked_url
from moldau.security.sasl.oauthbearer.jwks import KEY_TYPES, Jwks, RefreshSettings
from moldau.security.sasl.oauthbearer.signed import Demands, SignedValidator
from moldau.security.sasl.oauthbearer.token import Claims, InvalidToken, read_object, sections
from moldau.security.sasl.oauthbearer.urls import Endpoint, FetchFailed

logger = logging.getLogger(__name__)

_DISCOVERY: Final = "/.well-known/openid-configuration"
_REFRESH_S: Final = 3600.0
_RETRY_S: Final = 5.0
_TIMEOUT_S: Final = 10.0
_DEFAULT_ALGORITHM: Final = "RS256"


class ProviderUnavailable(Exception):
    """The identity provider does not answer, or its answers cannot be used."""


class LoginRefused(Exception):
    """The identity provider or the checks of its answer refuse a login."""


@dataclass(frozen=True, slots=True)
class _Discovered:
    issuer: str
    authorization_url: str
    sign_out_url: str | None
    token: Endpoint
    userinfo: Endpoint | None
    #: Whether the secret is sent as a field, for a provider that does not support the Authorization header.
    secret_in_form: bool
    algorithms: frozenset[str]
    jwks_url: str
    keys: Jwks


class IdentityProvider:
    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._tls = settings.trust_context()
        self._known: _Discovered | None = None
        self._fetched_s = 0.0
        self._retry_s = float("-inf")
        self._failure = ""
        self._fetching = threading.Lock()

    def check(self) -> None:
        """Read the discovery document if it is not known; `ProviderUnavailable` if that fails."""
        self._discovered()

    def authorization_url(self, fields: Mapping[str, str]) -> str:
        """Return the URL where the user signs in."""
        url = self._discovered().authorization_url
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._settings.client_id,
                "scope": self._settings.scopes,
                "code_challenge_method": "S256",
                **fields,
            }
        )
        return f"{url}{'&' if '?' in url else '?'}{query}"

    def sign_out_url(self, return_url: str) -> str | None:
        """Return the URL where the user's session at the provider ends (RP-Initiated Logout 1.0)."""
        url = self._discovered().sign_out_url
        if url is None:
            return None
        query = urlencode({"client_id": self._settings.client_id, "post_logout_redirect_uri": return_url})
        return f"{url}{'&' if '?' in url else '?'}{query}"

    def claims(self, code: str, verifier: str, redirect_uri: str, nonce: str) -> dict[str, Any]:
        """Exchange a code and return the checked claims of the user; `LoginRefused` if a check fails."""
        provider = self._discovered()
        answer = self._exchange(provider, code, verifier, redirect_uri)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise LoginRefused("The identity provider sent no id token.")
        try:
            claims = self._checked_id(provider, token, nonce)
        except InvalidToken as error:
            raise LoginRefused(f"The id token is refused: {error}.") from None
        access_token = answer.get("access_token")
        known = self._settings.rules.known(claims)
        if known or provider.userinfo is None or not isinstance(access_token, str):
            return claims
        return {**self._userinfo(provider.userinfo, access_token, claims), **claims}

    def bearer_claims(self, token: str) -> tuple[dict[str, Any], int]:
        """Return the checked claims of a script's access token, and when it expires, in ms since 1970."""
        provider = self._discovered()
        try:
            return self._checked(provider, token, self._settings.expected_audiences)
        except InvalidToken as error:
            raise LoginRefused(f"The token is refused: {error}.") from None

    def _checked_id(self, provider: _Discovered, token: str, nonce: str) -> dict[str, Any]:
        client = self._settings.client_id
        claims, _ = self._checked(provider, token, frozenset({client}))
        if claims.get("azp", client) != client:
            raise InvalidToken("it is for another client (azp)")
        if claims.get("nonce") != nonce:
            raise InvalidToken("it is of another login (nonce)")
        return claims

    def _checked(
        self, provider: _Discovered, token: str, audiences: frozenset[str]
    ) -> tuple[dict[str, Any], int]:
        header, payload, _ = sections(token)
        if read_object(header).get("alg") not in provider.algorithms:
            raise InvalidToken("its algorithm is not one that the provider announces")
        claims = read_object(payload)
        if claims.get("iss") != provider.issuer:
            raise InvalidToken("it is of another issuer")
        audience = claims.get("aud")
        named = [audience] if isinstance(audience, str) else audience
        if not isinstance(named, list) or not any(
            each in audiences for each in named if isinstance(each, str)
        ):
            raise InvalidToken("it is for another client (aud)")
        demands = Demands(provider.issuer, audiences, scope_claim="")
        return claims, SignedValidator(provider.keys, demands, self._clock).validate(token).expires_at_ms

    def _exchange(self, provider: _Discovered, code: str, verifier: str, redirect_uri: str) -> dict[str, Any]:
        settings = self._settings
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if not settings.client_secret or provider.secret_in_form:
            fields["client_id"] = settings.client_id
        if settings.client_secret and provider.secret_in_form:
            fields["client_secret"] = settings.client_secret
        elif settings.client_secret:
            # RFC 6749 §2.3.1: both are encoded as in a form.
            pair = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        try:
            return _object(provider.token.read(urlencode(fields).encode(), headers))
        except FetchFailed as error:
            if error.final:
                raise LoginRefused(f"The identity provider refuses the login: {error}") from None
            raise ProviderUnavailable(str(error)) from None

    def _userinfo(self, endpoint: Endpoint, access_token: str, claims: Claims) -> dict[str, Any]:
        """Read the claims that some providers leave out of the id token; they must be of the same user."""
        try:
            found = _object(endpoint.read(headers={"Authorization": f"Bearer {access_token}"}))
        except (FetchFailed, ProviderUnavailable) as error:
            logger.warning(
                "The claims of a user could not be read: %s", error, extra=event("console.claims_not_read")
            )
            return {}
        return found if found.get("sub") == claims.get("sub") else {}

    def _discovered(self) -> _Discovered:
        now = self._clock.monotonic()
        if self._known is not None and now - self._fetched_s < _REFRESH_S:
            return self._known
        # A document that is known is used while one thread fetches it again.
        if self._fetching.acquire(blocking=self._known is None):
            try:
                now = self._clock.monotonic()
                if now >= self._retry_s and (self._known is None or now - self._fetched_s >= _REFRESH_S):
                    self._discover(now)
            finally:
                self._fetching.release()
        if self._known is None:
            raise ProviderUnavailable(self._failure)
        return self._known

    def _discover(self, now: float) -> None:
        """Fetch the document; if that fails, the known one stays in use."""
        try:
            self._known = self._parsed(self._endpoint(self._settings.issuer.rstrip("/") + _DISCOVERY))
        except (FetchFailed, ProviderUnavailable) as error:
            self._failure, self._retry_s = str(error), now + _RETRY_S
            logger.warning(
                "The identity provider cannot be used: %s",
                error,
                extra=event("console.identity_provider_failed"),
            )
        else:
            self._fetched_s = now

    def _parsed(self, discovery: Endpoint) -> _Discovered:
        document = _object(discovery.read())
        issuer = document.get("issuer")
        if not isinstance(issuer, str) or issuer.rstrip("/") != self._settings.issuer.rstrip("/"):
            raise ProviderUnavailable(f"{discovery.url} is of the issuer {issuer!r}, not oidc.issuer.url")
        methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        announced = document.get("id_token_signing_alg_values_supported") or [_DEFAULT_ALGORITHM]
        userinfo, sign_out = document.get("userinfo_endpoint"), document.get("end_session_endpoint")
        jwks_url = _url(document, "jwks_uri")
        return _Discovered(
            issuer=issuer,
            authorization_url=_url(document, "authorization_endpoint"),
            sign_out_url=_url(document, "end_session_endpoint") if sign_out else None,
            token=self._endpoint(_url(document, "token_endpoint")),
            userinfo=self._endpoint(_url(document, "userinfo_endpoint")) if userinfo else None,
            secret_in_form="client_secret_basic" not in methods and "client_secret_post" in methods,
            algorithms=frozenset(each for each in announced if isinstance(each, str)) & KEY_TYPES.keys(),
            jwks_url=jwks_url,
            keys=self._keys(jwks_url),
        )

    def _keys(self, url: str) -> Jwks:
        """Return the keys; those that have been fetched are kept while their URL is the same."""
        if self._known is not None and self._known.jwks_url == url:
            return self._known.keys
        return Jwks(self._endpoint(url).read, RefreshSettings(), self._clock)

    def _endpoint(self, url: str) -> Endpoint:
        return Endpoint(url, _TIMEOUT_S, self._tls)


def _url(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise ProviderUnavailable(f"the discovery document lacks {name}")
    try:
        return checked_url(name, value)
    except ConfigError as error:
        raise ProviderUnavailable(str(error)) from None


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ProviderUnavailable("an answer of the identity provider is not a JSON object")
    return value
