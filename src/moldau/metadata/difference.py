"""The difference between two images, for those who jump from one to the other.

A node that is far behind gets a snapshot instead of the records in between. Its listeners still hear what
changed: a delta on the old image that leads to the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from moldau.metadata.changes import MapChanges
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage

K = TypeVar("K")
V = TypeVar("V")


def difference(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """A delta on `old` that, applied, gives `new`."""
    delta = MetadataDelta(old)
    delta.topics.become(new.topics)
    _become(delta.features, old.features.levels, new.features.levels)
    _become(delta.brokers, old.cluster.brokers, new.cluster.brokers)
    _become(delta.controllers, old.cluster.controllers, new.cluster.controllers)
    _become(delta.configs, old.configs, new.configs)
    _become(delta.client_quotas, old.client_quotas, new.client_quotas)
    _become(delta.acls, old.acls, new.acls)
    _become(delta.scram, old.scram, new.scram)
    _become(delta.delegation_tokens, old.delegation_tokens, new.delegation_tokens)
    delta.next_producer_id = new.next_producer_id
    return delta


def _become(changes: MapChanges[K, V], old: Mapping[K, V], new: Mapping[K, V]) -> None:
    for key in old:
        if key not in new:
            changes.remove(key)
    for key, value in new.items():
        if old.get(key) != value:
            changes.set(key, value)
