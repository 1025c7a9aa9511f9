"""Configurations of brokers are changed where they apply: a broker passes on only changes of its own.

A controller takes them for every broker, forwarded or from clients that talk to controllers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from moldau.base.errors import KafkaError
from moldau.controller.configs.checks import check_node_name
from moldau.metadata.image import ResourceType
from moldau.server.dispatch.context import RequestContext
from moldau.server.roles import BROKER

if TYPE_CHECKING:
    from moldau.server.node import Node

_WRONG_BROKER = "Unexpected broker id, expected {}, but received {}"


class _Resource(Protocol):
    resource_type: int
    resource_name: str


R = TypeVar("R", bound=_Resource)


def split_refused(
    node: Node, context: RequestContext, resources: Sequence[R]
) -> tuple[list[R], list[tuple[R, KafkaError]]]:
    """The resources whose changes the controller may decide, and those that were sent to the wrong broker."""
    if node.role_of(context.listener_name) != BROKER:
        return list(resources), []
    good, refused = [], []
    for resource in resources:
        try:
            if resource.resource_type == ResourceType.BROKER and resource.resource_name:
                check_node_name(resource.resource_name, node.id, _WRONG_BROKER)
            good.append(resource)
        except KafkaError as error:
            refused.append((resource, error))
    return good, refused
