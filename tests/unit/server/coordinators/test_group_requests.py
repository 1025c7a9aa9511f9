from __future__ import annotations

from typing import Any, cast

import pytest

from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.offset_delete import OffsetDeleteRequestPartition
from moldau.security.principal import ANONYMOUS
from moldau.server.coordinators.group_requests import known_partitions, requester
from moldau.server.dispatch.context import ListenerContext, RequestContext
from moldau.server.settings import BROKER
from tests.harness.worlds.coordination import Coordination

LISTENER = ListenerContext("PLAINTEXT", BROKER, "PLAINTEXT", {}, {})


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1%eth0"),
        ("2001:db8::ff00:42:8329", "/2001:db8:0:0:0:ff00:42:8329"),
    ],
)
def test_hosts_are_written_as_java_writes_them(host: str, told: str) -> None:
    context = RequestContext(11, 9, None, LISTENER, ANONYMOUS, host, cast(Any, None))
    assert requester(context).client_host == told


def test_partitions_that_exist_are_told_from_those_that_do_not() -> None:
    coordination = Coordination()
    coordination.create_topic("orders", 2)
    asked = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 5, 1, -1)]

    def split(image: MetadataImage, topic: str) -> list[list[int]]:
        return [[each.partition_index for each in part] for part in known_partitions(image, topic, asked)]

    assert split(coordination.image, "orders") == [[0, 1], [5, -1]]
    assert split(coordination.image, "unknown") == [[], [0, 5, 1, -1]]
