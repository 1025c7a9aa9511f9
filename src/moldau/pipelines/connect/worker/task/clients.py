"""The clients of tasks: which properties of worker and connector configure them.

A worker's property `producer.NAME` configures the producers of its tasks, `producer.override.NAME` of a
connector those of its own tasks; the same for `consumer.` and `admin.`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.pipelines.connect.worker.task.spec import TaskSpec

#: Settings of the worker that its clients share, by prefix or whole name.
_SHARED: Final = ("ssl.", "sasl.", "security.")
_BOOTSTRAP: Final = "bootstrap.servers"


def shared_properties(worker: Mapping[str, str]) -> dict[str, str]:
    """Return how all clients of a worker connect."""
    found = {name: value for name, value in worker.items() if name.startswith(_SHARED)}
    return {_BOOTSTRAP: worker[_BOOTSTRAP], **found}


def producer_properties(
    spec: TaskSpec, client_id: str, transactional_id: str | None = None
) -> dict[str, str]:
    defaults = {
        "acks": "all",
        "enable.idempotence": "true",
        "client.id": client_id,
        "max.block.ms": str(2**31 - 1),
    }
    if transactional_id is None:
        defaults["delivery.timeout.ms"] = str(2**31 - 1)
        return defaults | _client(spec, "producer.")
    # A record that outlives its transaction is lost with it, so the transaction's timeout limits both.
    return defaults | _client(spec, "producer.") | {"transactional.id": transactional_id}


def consumer_properties(spec: TaskSpec, client_id: str) -> dict[str, str]:
    defaults = {
        "group.id": group_id(spec.connector_config, spec.connector),
        "client.id": client_id,
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": "true",
    }
    return defaults | _client(spec, "consumer.")


def admin_properties(spec: TaskSpec) -> dict[str, str]:
    return _client(spec, "admin.")


def group_id(connector_config: Mapping[str, str], connector: str) -> str:
    """Return the consumer group of a sink connector."""
    return connector_config.get("consumer.override.group.id") or f"connect-{connector}"


def _client(spec: TaskSpec, prefix: str) -> dict[str, str]:
    worker, override = spec.worker_config, f"{prefix}override."
    properties = shared_properties(worker)
    properties |= {
        name.removeprefix(prefix): each for name, each in worker.items() if name.startswith(prefix)
    }
    return properties | {
        name.removeprefix(override): each
        for name, each in spec.connector_config.items()
        if name.startswith(override)
    }
