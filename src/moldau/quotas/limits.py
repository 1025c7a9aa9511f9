"""The limits of one kind of quota and which of them applies to a client.

The most specific of eight levels applies: user and client id, user with default client id, user; then the
same with the default user; then client id and default client id. Clients to which the same level applies with
the same names share one limit, for example all clients of a user that has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.metadata.image import QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

#: User and client id of a level: "" if the level does not have it, None for the default entity.
Level = tuple[str | None, str | None]
#: User and client id that share a limit; "" for the one that does not matter.
QuotaClient = tuple[str, str]


class QuotaLimits:
    """The limits of one quota, by level."""

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]], key: str) -> None:
        self._limits: dict[Level, float] = {}
        for entity, values in quotas.items():
            names = dict(entity)
            if key in values and IP not in names:
                self._limits[names.get(USER, ""), names.get(CLIENT_ID, "")] = values[key]

    def __bool__(self) -> bool:
        return bool(self._limits)

    def client(self, user: str, client_id: str) -> QuotaClient:
        """Return the user and the client id by which a client is measured."""
        limits = self._limits
        if (user, client_id) in limits or (user, None) in limits:
            return user, client_id
        if (user, "") in limits:
            return user, ""
        if (None, client_id) in limits or (None, None) in limits:
            return user, client_id
        if (None, "") in limits:
            return user, ""
        return "", client_id

    def limit(self, client: QuotaClient) -> float | None:
        """Return the limit of what `client` returned; None if it is not limited."""
        for level in _levels(*client):
            if level in self._limits:
                return self._limits[level]
        return None


def _levels(user: str, client_id: str) -> tuple[Level, ...]:
    if user and client_id:
        return (user, client_id), (user, None), (None, client_id), (None, None)
    if user:
        return (user, ""), (None, "")
    return (("", client_id), ("", None)) if client_id else ()
