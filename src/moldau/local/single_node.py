"""The settings of a node that is a cluster of its own: both roles, and internal topics with one replica."""

from __future__ import annotations

from typing import Final

CONTROLLER_LISTENER: Final = "CONTROLLER"


def single_node_properties(host: str, port: int, controller_port: int, folder: str) -> dict[str, str]:
    """A port of 0 is any free one."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{host}:{port},{CONTROLLER_LISTENER}://{host}:{controller_port}",
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": f"{host}:{controller_port or 9093}",
        "log.dirs": folder,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
