"""The parts that all roles of a node share, as `node.py` wires them.

Only the wiring (`node.py`, `broker.py`, the API table) uses `NodeServices`; handlers and coordinators receive
the parts they need.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.base.clock import Clock
from moldau.base.ids import Randomness
from moldau.base.pool import Pool
from moldau.network.limits import ConnectionLimits
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.quotas.client_quotas import ClientQuotas
from moldau.security.acl.authorizer import Authorizer
from moldau.server.authentication.connectors import NodeConnectors
from moldau.server.authentication.store_changes import StoreChanges
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.brokers.suspected_brokers import SuspectedBrokers
from moldau.server.controller.channel import ControllerChannel
from moldau.server.controller.failure_detector import BrokerFailureDetector
from moldau.server.controller.local import LocalController
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings
from moldau.server.startup.identity import Identity
from moldau.server.tasks import BackgroundTasks
from moldau.storage.disk.disk import Disk


@dataclass(frozen=True, slots=True)
class NodeServices:
    identity: Identity
    settings: NodeSettings
    clock: Clock
    randomness: Randomness
    disk: Disk
    pool: Pool
    limits: ConnectionLimits
    quotas: ClientQuotas
    tasks: BackgroundTasks
    #: Open connections to other nodes.
    connectors: NodeConnectors
    store_changes: StoreChanges
    #: None: every request is allowed.
    authorizer: Authorizer | None
    quorum: MetadataQuorum
    #: The committed metadata that is applied on this node.
    metadata: MetadataPublisher
    local_controller: LocalController
    #: The active controller, wherever it runs.
    controller: ControllerChannel
    suspected_brokers: SuspectedBrokers
    failure_detector: BrokerFailureDetector

    @property
    def id(self) -> int:
        return self.identity.node_id

    def broker_peers(self, purpose: str) -> BrokerPeers:
        """Return connections to the other brokers for one purpose."""
        return BrokerPeers(purpose, self.id, self.metadata, self.settings, self.connectors.brokers)
