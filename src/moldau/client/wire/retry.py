"""How long a reader takes errors as passing before it gives up.

Longer than the admin client, which somebody waits for: a reader is half-way through a range, and its broker
may be restarted meanwhile. So even the only broker of a cluster may be away for `patience_ms`. What cannot
change by waiting is raised at once.
"""

from __future__ import annotations

import asyncio

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.batches.types import CorruptRecords
from moldau.client.wire.settings import ClientSettings
from moldau.network.failures import NodeUnreachable, NotKafka

#: A topic that was just made is known everywhere after less.
_UNKNOWN_MS = 10_000
_UNKNOWN_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class Patience:
    """Make one at the last progress; `wait_after` every error since."""

    def __init__(self, settings: ClientSettings, patience_ms: int | None) -> None:
        self._settings = settings
        self._patience_ms = 2 * settings.api_timeout_ms if patience_ms is None else patience_ms
        self._begin = asyncio.get_running_loop().time()
        self._unknown_since: float | None = None
        self._failures = 0

    @property
    def spent(self) -> bool:
        return self._ms_since(self._begin) > self._patience_ms

    async def wait_after(self, error: KafkaError) -> None:
        """Wait before the next attempt, or raise the error."""
        if not _may_pass(error) or self.spent or self._unknown_for_long(error):
            raise error
        self._failures += 1
        await asyncio.sleep(self._settings.backoff.seconds(self._failures))

    def _unknown_for_long(self, error: KafkaError) -> bool:
        """A topic nobody knows was deleted, and one with another id made anew. For a moment after that a
        broker may not have heard of it yet."""
        if error.code not in _UNKNOWN_TOPIC:
            self._unknown_since = None
            return False
        if self._unknown_since is None:
            self._unknown_since = asyncio.get_running_loop().time()
        return self._ms_since(self._unknown_since) > min(self._settings.bootstrap_timeout_ms, _UNKNOWN_MS)

    def _ms_since(self, moment: float) -> float:
        return (asyncio.get_running_loop().time() - moment) * 1000


def _may_pass(error: KafkaError) -> bool:
    if isinstance(error, NodeUnreachable):
        return error.passing
    if isinstance(error, NotKafka | CorruptRecords):
        return False
    return error.code.retriable or error.code in (*_UNKNOWN_TOPIC, ErrorCode.BROKER_NOT_AVAILABLE)
