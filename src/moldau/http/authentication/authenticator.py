"""Which requests are served, and as which principal: `authentication.method` and its settings.

| method | principal |
|---|---|
| `NONE` (default) | the client's certificate if it has one, else ANONYMOUS; credentials are not verified |
| `BASIC` | the user of the credentials, who needs one of `authentication.roles` |
| `BEARER` | the subject of the token |
| `BASIC,BEARER` | either |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from moldau.base.clock import Clock
from moldau.config.definition import ConfigError
from moldau.http.authentication.credentials import BASIC, BEARER, Credentials
from moldau.http.errors import ApiError
from moldau.security.principal import USER, KafkaPrincipal

if TYPE_CHECKING:
    from moldau.http.authentication.bearer import BearerTokens
    from moldau.http.authentication.users import Users

_METHOD: Final = "authentication.method"
_ANY_ROLE: Final = frozenset({"*"})


class Authenticator:
    def __init__(
        self,
        *,
        users: Users | None,
        tokens: BearerTokens | None,
        roles: frozenset[str],
        realm: str,
        open_paths: frozenset[str],
    ) -> None:
        self._users = users
        self._tokens = tokens
        self._roles = roles
        self._open_paths = open_paths
        challenges = []
        if users is not None:
            challenges.append((b"www-authenticate", f'Basic realm="{realm}"'.encode("latin-1", "replace")))
        if tokens is not None:
            challenges.append((b"www-authenticate", b"Bearer"))
        self._challenges = tuple(challenges)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], clock: Clock) -> Authenticator | None:
        """Read the settings; None without authentication, `ConfigError` if they are invalid."""
        methods = {name.strip().upper() for name in properties.get(_METHOD, "").split(",")} - {"", "NONE"}
        if not methods:
            return None
        if not methods <= {BASIC, BEARER}:
            raise ConfigError(
                f"{_METHOD}={properties[_METHOD]} is not supported; use NONE, BASIC, BEARER or BASIC,BEARER."
            )
        users = tokens = None
        if BASIC in methods:
            from moldau.http.authentication.users import Users

            users = Users.from_properties(properties)
        if BEARER in methods:
            from moldau.http.authentication.bearer import BearerTokens

            tokens = BearerTokens.from_properties(properties, clock)
        return cls(
            users=users,
            tokens=tokens,
            roles=_names(properties.get("authentication.roles", "*")),
            realm=properties.get("authentication.realm", "").strip().replace('"', ""),
            open_paths=_names(properties.get("authentication.skip.paths", "")),
        )

    async def authenticate(self, path: str, credentials: Credentials | None) -> KafkaPrincipal | None:
        """Return the principal of a request, None for a path that is open; `ApiError` 401 or 403."""
        if path in self._open_paths:
            return None
        if credentials is not None and credentials.scheme == BASIC and self._users is not None:
            user = self._users.authenticate(credentials.user, credentials.secret)
            if user is not None:
                if self._roles != _ANY_ROLE and not self._roles & user.roles:
                    raise ApiError(403, 403, "Forbidden")
                return KafkaPrincipal(USER, user.name)
        if credentials is not None and credentials.scheme == BEARER and self._tokens is not None:
            name = await self._tokens.authenticate(credentials.secret)
            if name is not None:
                return KafkaPrincipal(USER, name)
        raise ApiError(401, 401, "Unauthorized", self._challenges)


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in text.split(","))))
