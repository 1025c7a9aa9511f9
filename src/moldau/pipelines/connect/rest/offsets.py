"""`/connectors/NAME/offsets`: read, change and reset how far a connector has got.

Offsets of a source are what its tasks have stored, those of a sink the offsets of its consumer group. They
may be changed only while the connector is STOPPED.
"""

from __future__ import annotations

from typing import Any, Final

from moldau.pipelines.connect.rest.call import Call, Response, Route, answer
from moldau.pipelines.connect.worker.herder import bad_request
from moldau.pipelines.connect.worker.offsets import ConnectorOffsets


async def get(call: Call) -> Response:
    offsets = await ConnectorOffsets(call.herder).get(call.connector)
    return answer({"offsets": [{"partition": each, "offset": offset} for each, offset in offsets]})


async def alter(call: Call) -> Response:
    body = await call.json_object()
    entries = body.get("offsets")
    if not entries:
        raise bad_request("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise bad_request("The field offsets is not a list of objects with partition and offset.")
    wanted: list[tuple[Any, Any]] = [(each.get("partition"), each.get("offset")) for each in entries]
    return answer({"message": await ConnectorOffsets(call.herder).alter(call.connector, wanted)})


async def reset(call: Call) -> Response:
    return answer({"message": await ConnectorOffsets(call.herder).reset(call.connector)})


ROUTES: Final = (
    Route("GET", "/connectors/{connector}/offsets", get),
    Route("PATCH", "/connectors/{connector}/offsets", alter),
    Route("DELETE", "/connectors/{connector}/offsets", reset),
)
