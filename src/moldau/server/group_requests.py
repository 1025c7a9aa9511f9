"""What the handlers of the group APIs have in common: who asks, and which partitions there are."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Protocol, TypeVar

from moldau.groups.context import Requester
from moldau.metadata.image import MetadataImage
from moldau.server.dispatch.context import RequestContext


class _Indexed(Protocol):
    partition_index: int


P = TypeVar("P", bound=_Indexed)


def requester(context: RequestContext) -> Requester:
    return Requester(context.api_version, context.client_id or "", "/" + _java_host(context.client_host))


def _java_host(host: str) -> str:
    """The address as Java writes it: IPv6 without abbreviation."""
    if ":" not in host:
        return host
    address, _, scope = host.partition("%")
    parts = (f"{int(part, 16):x}" for part in ipaddress.IPv6Address(address).exploded.split(":"))
    return ":".join(parts) + (f"%{scope}" if scope else "")


def known_partitions(image: MetadataImage, topic: str, partitions: Sequence[P]) -> tuple[list[P], list[P]]:
    """Those that exist, and those that do not."""
    found = image.topics.by_name.get(topic)
    existing = found.partitions if found is not None else {}
    known = [each for each in partitions if each.partition_index in existing]
    return known, [each for each in partitions if each.partition_index not in existing]
