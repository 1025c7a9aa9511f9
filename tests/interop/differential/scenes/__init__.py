"""The scenes of the differential test: requests to send to both brokers, by the name of the scene.

A scene is a function that sends requests through a `Broker`, which records the responses.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.interop.differential.broker import Broker
from tests.interop.differential.scenes import (
    administration,
    broker_registration,
    classic_groups,
    cluster_administration,
    concurrent_administration,
    concurrent_clients,
    consumer_groups,
    controller,
    fetch,
    list_offsets,
    metadata,
    offset_commits,
    produce,
    quorum,
    share_groups,
    share_state,
    streams_groups,
    topics,
    transactions,
    users,
    voters,
)

#: Scenes that change the leader of the metadata quorum or register brokers: they need nodes of their own.
DISTURBING: dict[str, Callable[[Broker], None]] = {
    **quorum.SCENES,
    **voters.SCENES,
    **broker_registration.SCENES,
}
SCENES: dict[str, Callable[[Broker], None]] = {
    **produce.SCENES,
    **fetch.SCENES,
    **list_offsets.SCENES,
    **metadata.SCENES,
    **administration.SCENES,
    **topics.SCENES,
    **transactions.SCENES,
    **cluster_administration.SCENES,
    **users.SCENES,
    **controller.SCENES,
    **concurrent_clients.SCENES,
    **concurrent_administration.SCENES,
    **classic_groups.SCENES,
    **offset_commits.SCENES,
    **consumer_groups.SCENES,
    **share_groups.SCENES,
    **share_state.SCENES,
    **streams_groups.SCENES,
    **DISTURBING,
}
