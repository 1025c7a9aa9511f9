"""The minimal properties of a node."""

from __future__ import annotations

from moldau.config.broker.config import BrokerConfig

NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data/a",
}


def node(*without: str, **changes: str) -> dict[str, str]:
    """Return the properties with some removed and some changed; `_` in a keyword stands for a dot."""
    kept = {name: value for name, value in NODE.items() if name not in without}
    return kept | {name.replace("_", "."): value for name, value in changes.items()}


def config(*without: str, **changes: str) -> BrokerConfig:
    return BrokerConfig.from_properties(node(*without, **changes))
