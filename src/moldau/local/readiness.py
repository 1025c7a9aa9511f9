"""Wait until all brokers of a cluster report each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

from moldau.base.errors import KafkaError
from moldau.network.client import NodeConnection
from moldau.network.connector import PLAINTEXT, Connector
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

_INTERVAL_S = 0.01


Addresses = Mapping[int, tuple[str, int]]


def wait_for_brokers(addresses: Addresses, timeout: float, connector: Connector = PLAINTEXT) -> None:
    """Wait until each of these brokers reports exactly these brokers to its clients."""
    outcome: list[str] = []

    def watch() -> None:
        outcome.append(asyncio.run(_watch(addresses, timeout, connector)))

    # In a thread, because the caller may run in an event loop.
    thread = threading.Thread(target=watch, name="moldau-watch")
    thread.start()
    thread.join()
    if not outcome or outcome[0]:
        detail = outcome[0] if outcome else "no broker could be reached"
        raise TimeoutError(f"not all brokers were ready within {timeout:g} s: {detail}")


async def _watch(addresses: Addresses, timeout: float, connector: Connector) -> str:
    """Return what is missing at the timeout; empty if nothing is."""
    seen: dict[int, str] = {}
    try:
        async with asyncio.timeout(timeout):
            await asyncio.gather(*(_watch_one(each, addresses, connector, seen) for each in addresses))
    except TimeoutError:
        return "; ".join(f"node {node_id} reports {what}" for node_id, what in sorted(seen.items()))
    return ""


async def _watch_one(node_id: int, addresses: Addresses, connector: Connector, seen: dict[int, str]) -> None:
    while True:
        try:
            connection = await NodeConnection.connect(*addresses[node_id], connector=connector)
            try:
                while (known := await _brokers(connection)) != set(addresses):
                    seen[node_id] = f"brokers {sorted(known)}"
                    await asyncio.sleep(_INTERVAL_S)
            finally:
                connection.close()
            seen.pop(node_id, None)
            return
        except KafkaError as error:
            seen[node_id] = f"nothing ({error})"
            await asyncio.sleep(_INTERVAL_S)


async def _brokers(connection: NodeConnection) -> set[int]:
    described: DescribeClusterResponse = await connection.call(DescribeClusterRequest())
    return {broker.broker_id for broker in described.brokers}
