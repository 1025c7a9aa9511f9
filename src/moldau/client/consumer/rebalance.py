"""Rebalance listeners, and their adaption to librdkafka's callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.client.topic_partitions import from_librdkafka


class RebalanceListener:
    """Override what you need. Called inside `poll` and `close`, before the assignment changes.

    `on_partitions_lost` is called instead of `on_partitions_revoked` if the partitions may already belong
    to another member, so that offsets cannot be committed; by default it calls `on_partitions_revoked`.
    """

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Called with all partitions (eager protocol) or the added ones (cooperative protocol)."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Called with the partitions to be revoked: the last opportunity to commit their offsets."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.on_partitions_revoked(partitions)


def callbacks(
    listener: RebalanceListener | None,
    removed: Callable[[list[TopicPartition]], None],
    failed: Callable[[Exception], None],
) -> dict[str, Callable[[Any, Any], None]]:
    """Return librdkafka's callbacks for a listener; `removed` is called with revoked or lost partitions.

    Exceptions of the listener are passed to `failed`: librdkafka would drop the records of the same poll.
    """
    target = listener if listener is not None else RebalanceListener()

    def notify(call: Callable[[list[TopicPartition]], None], names: list[TopicPartition]) -> None:
        try:
            call(names)
        except Exception as error:  # noqa: BLE001 - raised by the poll
            failed(error)

    def assigned(_: Any, partitions: Any) -> None:
        notify(target.on_partitions_assigned, from_librdkafka(partitions))

    def revoked(_: Any, partitions: Any) -> None:
        names = from_librdkafka(partitions)
        notify(target.on_partitions_revoked, names)
        removed(names)

    def lost(_: Any, partitions: Any) -> None:
        names = from_librdkafka(partitions)
        removed(names)
        notify(target.on_partitions_lost, names)

    return {"on_assign": assigned, "on_revoke": revoked, "on_lost": lost}
