"""The node, wired by hand: every part is made here and handed what it needs.

Start: take the ports, lock and read the folders, load the metadata log and lead the quorum, open the logs,
register, then let clients in. Stop is the reverse: no new requests, background work ended, logs synced and
marked clean.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from moldau.base.broker_config import BrokerConfig
from moldau.base.clock import Clock
from moldau.base.ids import Randomness, TopicPartition, Uuid
from moldau.base.pool import Pool
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.network.listener import ConnectionLimits, Listener
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.apis import ServedApi, served_apis
from moldau.server.broker_lifecycle import BrokerLifecycle
from moldau.server.controller_channel import ControllerChannel
from moldau.server.dispatcher import ApiDispatcher
from moldau.server.fetch_sessions import FetchSessionCache
from moldau.server.node_settings import NodeSettings
from moldau.server.producer_ids import ProducerIds
from moldau.server.publisher import Publisher
from moldau.server.roles import BROKER, CONTROLLER
from moldau.server.scheduler import Scheduler
from moldau.server.storage_folders import read_folders
from moldau.storage.cleaner_job import CleanerRunner
from moldau.storage.disk import Disk
from moldau.storage.log_manager import DirectoryFailure, LogManager

log = logging.getLogger(__name__)


class Node:
    """One process of a cluster: broker and controller."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        randomness: Randomness,
        disk: Disk,
        pool: Pool,
        cleaner: CleanerRunner,
        on_fatal: Callable[[], None],
    ) -> None:
        self.clock = clock
        self.disk = disk
        self.pool = pool
        self.id = config.node_id
        self.failed = False
        self.settings = NodeSettings(config)
        self._randomness = randomness
        self._cleaner = cleaner
        self._on_fatal = on_fatal
        self._scheduler = Scheduler()
        self._tables = {role: served_apis(role) for role in (BROKER, CONTROLLER)}
        self._listeners: dict[str, Listener] = {}
        self.limits = ConnectionLimits()
        self.fetch_sessions = FetchSessionCache(
            clock, randomness, config["max.incremental.fetch.session.cache.slots"]
        )
