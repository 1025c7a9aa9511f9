"""The time a batch reader retries without progress.

It retries longer than the admin client, for which a user waits: a reader may be in the middle of a range
while its broker is restarted, even the only broker of a cluster. Permanent errors are raised at once.
"""

from __future__ import annotations

import asyncio

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.batches.types import CorruptRecords
from moldau.client.wire.settings import ClientSettings
from moldau.network.failures import NodeUnreachable, PermanentFailure

#: A new topic is known to all brokers within this time.
_UNKNOWN_MS = 10_000
_UNKNOWN_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class ReadRetries:
    """The retries since the last progress, up to `retry_timeout_ms`."""

    def __init__(self, settings: ClientSettings, retry_timeout_ms: int | None) -> None:
        self._settings = settings
        default_ms = 2 * settings.api_timeout_ms
        self._timeout_ms = default_ms if retry_timeout_ms is None else retry_timeout_ms
        self._begin = asyncio.get_running_loop().time()
        self._unknown_since: float | None = None
        self._failures = 0

    @property
    def expired(self) -> bool:
        return self._ms_since(self._begin) > self._timeout_ms

    async def wait_after(self, error: KafkaError) -> None:
        """Wait before the next attempt, or raise the error if it is permanent or the time is up."""
        if not _is_retriable(error) or self.expired or self._unknown_for_long(error):
            raise error
        self._failures += 1
        await asyncio.sleep(self._settings.backoff.seconds(self._failures))

    def _unknown_for_long(self, error: KafkaError) -> bool:
        """An unknown topic was deleted; or it is new, and the broker does not know it yet."""
        if error.code not in _UNKNOWN_TOPIC:
            self._unknown_since = None
            return False
        if self._unknown_since is None:
            self._unknown_since = asyncio.get_running_loop().time()
        return self._ms_since(self._unknown_since) > min(self._settings.bootstrap_timeout_ms, _UNKNOWN_MS)

    def _ms_since(self, moment: float) -> float:
        return (asyncio.get_running_loop().time() - moment) * 1000


def _is_retriable(error: KafkaError) -> bool:
    if isinstance(error, NodeUnreachable):
        return error.passing
    if isinstance(error, PermanentFailure | CorruptRecords):
        return False
    return error.code.retriable or error.code in (*_UNKNOWN_TOPIC, ErrorCode.BROKER_NOT_AVAILABLE)
