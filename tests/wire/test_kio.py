"""Every message and version of `kio`: the same values have the same bytes, and each decodes the other's."""

from __future__ import annotations

import io
import random
from pkgutil import resolve_name
from typing import Any

import pytest
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from moldau.protocol.schema import Message, decode, encode_bytes
from tests.wire.catalog import all_messages
from tests.wire.kio_pairs import pair

SAMPLES = 6


OURS = all_messages()
CASES = [
    (path, version)
    for versions in schema_name_map.values()
    for version, paths in versions.items()
    for kind, path in paths.items()
    if kind is not EntityType.header
]


def test_kio_has_nearly_all_messages() -> None:
    known = {path.rpartition(":")[2] for path, _ in CASES}
    missing = {name for name in OURS if name.endswith(("Request", "Response"))} - known
    assert len(CASES) > 580
    assert missing <= {"ControllerRegistrationRequest", "ControllerRegistrationResponse"}, missing


@pytest.mark.parametrize(("path", "version"), CASES, ids=[f"{p.rpartition(':')[2]}-v{v}" for p, v in CASES])
def test_message_has_the_bytes_of_kio(path: str, version: int) -> None:
    theirs: Any = resolve_name(path)
    ours = OURS[theirs.__name__]
    if not ours.VERSIONS.has(version):
        pytest.skip(f"Kafka 4.3 has no version {version}")
    rng = random.Random(f"{path} {version}")
    read, write = entity_reader(theirs), entity_writer(theirs)
    for _ in range(SAMPLES):
        message, twin = pair(ours, theirs, version, rng)
        assert isinstance(message, Message)
        data = encode_bytes(message, version)
        buffer = io.BytesIO()
        write(buffer, twin)
        assert data == buffer.getvalue()
        assert decode(ours, data, version) == message
        assert decode(ours, memoryview(b"head" + data)[4:], version) == message
        assert read_back(read, data) == twin


def read_back(read: Any, data: bytes) -> Any:
    entity, size = read(data, 0)
    assert size == len(data)
    return entity
