"""What a consumer is told about its partitions, and how that reaches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.client.topic_partitions import from_librdkafka


class RebalanceListener:
    """Overwrite what you need. Called inside `poll` (and `close`), before the partitions come or go.

    `on_partitions_lost` is called instead of `on_partitions_revoked` when the partitions may belong to
    another member already, so nothing can be committed for them; unless it is overwritten it does the same.
    """

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """The consumer has these from now on: all of its partitions in eager protocols, else the new ones."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """The consumer gives these up: the last occasion to commit for them."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.on_partitions_revoked(partitions)


def callbacks(
    listener: RebalanceListener | None,
    gone: Callable[[list[TopicPartition]], None],
    failed: Callable[[Exception], None],
) -> dict[str, Callable[[Any, Any], None]]:
    """The same for librdkafka; `gone` is told of partitions the consumer no longer has.

    An exception of the listener goes to `failed`: librdkafka would throw away the records that the same call
    has found.
    """
    told = listener if listener is not None else RebalanceListener()

    def tell(call: Callable[[list[TopicPartition]], None], names: list[TopicPartition]) -> None:
        try:
            call(names)
        except Exception as error:  # noqa: BLE001 - it is raised by the poll
            failed(error)

    def assigned(_: Any, partitions: Any) -> None:
        tell(told.on_partitions_assigned, from_librdkafka(partitions))

    def revoked(_: Any, partitions: Any) -> None:
        names = from_librdkafka(partitions)
        tell(told.on_partitions_revoked, names)
        gone(names)

    def lost(_: Any, partitions: Any) -> None:
        names = from_librdkafka(partitions)
        gone(names)
        tell(told.on_partitions_lost, names)

    return {"on_assign": assigned, "on_revoke": revoked, "on_lost": lost}
