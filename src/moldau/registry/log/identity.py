"""What instances of a registry exchange in their group: identities, and the assignment of the leader.

The JSON is that of Confluent's registry (protocol type `sr`, protocol `v0`), so that instances of both can be
members of one group, and never lead at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

PROTOCOL_TYPE: Final = "sr"
PROTOCOL: Final = "v0"
NO_ERROR, DUPLICATE_URLS = 0, 1
_VERSION: Final = 1


class InvalidIdentity(ValueError):
    """The metadata or the assignment of a member is not that of a registry."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An instance: the address that other instances forward to."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True
    #: Whether it leads; not a part of what it is.
    leads: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def is_same(self, other: Identity | None) -> bool:
        return other is not None and replace(self, leads=False) == replace(other, leads=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
            "leader": self.leads,
        }

    @classmethod
    def from_json(cls, value: Any) -> Identity:
        """Read the metadata of a member; older releases leave out scheme and leader."""
        try:
            return cls(
                host=str(value["host"]),
                port=int(value["port"]),
                scheme=str(value.get("scheme") or "http"),
                eligible=bool(value.get("master_eligibility")),
                leads=bool(value.get("leader")),
            )
        except (TypeError, KeyError, ValueError, AttributeError):
            raise InvalidIdentity("a member of the group is not a schema registry") from None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The leader as the group's leader has chosen it; the same for all members."""

    error: int
    member_id: str | None
    leader: Identity | None

    def encode(self) -> bytes:
        """Return the JSON; without a leader its fields are left out."""
        fields: dict[str, Any] = {"version": _VERSION, "error": self.error}
        if self.leader is not None:
            fields.update(master=self.member_id, master_identity=self.leader.to_json())
        return json.dumps(fields, separators=(",", ":")).encode()


def encode_identity(identity: Identity) -> bytes:
    return json.dumps(identity.to_json(), separators=(",", ":")).encode()


def decode_identity(data: bytes) -> Identity:
    return Identity.from_json(_parse(data))


def decode_assignment(data: bytes) -> Assignment:
    value = _parse(data)
    if not isinstance(value, dict):
        raise InvalidIdentity("the assignment of the group is not that of a schema registry")
    identity = value.get("master_identity")
    return Assignment(
        error=int(value.get("error") or 0),
        member_id=value.get("master"),
        leader=None if identity is None else Identity.from_json(identity),
    )


def assign(members: Mapping[str, Identity], *, sticky: bool) -> Assignment:
    """Choose the leader among the eligible members: the one that leads already, else the smallest URL."""
    eligible = sorted(
        ((member_id, each) for member_id, each in members.items() if each.eligible),
        key=lambda member: (member[1].url, member[0]),
    )
    leading = [member for member in eligible if member[1].leads]
    candidates = leading if sticky and len(leading) == 1 else eligible
    urls = {identity.url for identity in members.values()}
    error = NO_ERROR if len(urls) == len(members) else DUPLICATE_URLS
    if not candidates:
        return Assignment(error, None, None)
    member_id, identity = candidates[0]
    return Assignment(error, member_id, identity)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise InvalidIdentity("the group contains members that are not schema registries") from None
