"""The state maps of a task in Spark's state store, many keys at a time.

Spark's client sends a request for one key, and waits for its answer. Two processes wake up for every key,
which takes longer than the work itself. Here requests are sent in groups: the server reads and answers them
one after the other, and the answers are read when the group has been sent. A group is limited, because a
server whose answers are not read stops reading requests: the requests of a group to read fit into the buffer
of the socket, and so do the answers to a group of writes.

The messages are those of PySpark's `MapStateClient`, which has no such operation.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql.streaming.stateful_processor import MapState

_GROUP = 256
#: Less than the smallest buffer of a socket.
_GROUP_BYTES = 32 << 10
_VERSION = 0
_HEAD, _SIZE = Struct("!ii"), Struct("!i")


class StoredMap:
    """A map of a task; its keys and values are bytes."""

    def __init__(self, state: MapState) -> None:
        self._state = state
        self._name = state._stateName
        self._client = state._mapStateClient._stateful_processor_api_client

    def get(self, key: bytes) -> bytes | None:
        found = self._state.getValue((key,))
        return None if found is None else bytes(found[0])

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        for key, value in self._state.iterator():
            yield bytes(key[0]), bytes(value[0])

    def read(self, keys: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """Return the values of many keys."""
        wanted = list(keys)
        answers = self._exchange(self._get_request(key) for key in wanted)
        return {key: self._value(answer) for key, answer in zip(wanted, answers, strict=True)}

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Put the values of many keys; None deletes a key."""
        requests = (
            self._remove_request(key) if value is None else self._put_request(key, value)
            for key, value in sorted(changes.items())
        )
        for _ in self._exchange(requests):
            continue

    def _value(self, answer: bytes) -> bytes | None:
        return bytes(self._client._deserialize_from_bytes(answer)[0]) if answer else None

    def _exchange(self, requests: Iterable[bytes]) -> Iterator[bytes]:
        """Send requests and return the values of their answers, in the same order."""
        for group in _groups(requests):
            file = self._client.sockfile
            for request in group:
                file.write(_HEAD.pack(_VERSION, len(request)) + request)
            file.flush()
            yield from _answers(file, len(group))

    def _get_request(self, key: bytes) -> bytes:
        return _request(self._name, "getValue", userKey=_packed(key))

    def _put_request(self, key: bytes, value: bytes) -> bytes:
        return _request(self._name, "updateValue", userKey=_packed(key), value=_packed(value))

    def _remove_request(self, key: bytes) -> bytes:
        return _request(self._name, "removeKey", userKey=_packed(key))


def _packed(data: bytes) -> bytes:
    return pickle.dumps((data,), pickle.HIGHEST_PROTOCOL)


def _groups(requests: Iterable[bytes]) -> Iterator[Sequence[bytes]]:
    group: list[bytes] = []
    size = 0
    for request in requests:
        if group and (len(group) >= _GROUP or size + len(request) > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(request)
        size += len(request)
    if group:
        yield group


def _request(name: str, call: str, **arguments: bytes) -> bytes:
    import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

    kinds = {
        "getValue": messages.GetValue,
        "updateValue": messages.UpdateValue,
        "removeKey": messages.RemoveKey,
    }
    of_map = messages.MapStateCall(stateName=name, **{call: kinds[call](**arguments)})
    request = messages.StateRequest(stateVariableRequest=messages.StateVariableRequest(mapStateCall=of_map))
    data: bytes = request.SerializeToString()
    return data


def _size(file: Any) -> int:
    size: int = _SIZE.unpack(file.read(_SIZE.size))[0]
    return size


def _answers(file: Any, count: int) -> list[bytes]:
    """Read all answers of a group, and raise an error if one of them is an error."""
    import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

    answers = [messages.StateResponse.FromString(file.read(_size(file))) for _ in range(count)]
    for answer in answers:
        if answer.statusCode != 0:
            raise PySparkRuntimeError(f"The state store failed: {answer.errorMessage}")
    return [answer.value for answer in answers]
