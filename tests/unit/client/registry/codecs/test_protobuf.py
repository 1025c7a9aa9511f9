"""Message types by their paths in the file."""

from __future__ import annotations

import pytest

from moldau.client.registry.codecs.protobuf import ProtobufCodec
from moldau.client.serdes import SerializationError

FILE = 'syntax="proto3"; message A { message B {} message C {} } message D {}'


def test_paths_name_message_types() -> None:
    codec = ProtobufCodec(FILE)
    names = [codec.descriptor(path).full_name for path in ((0,), (0, 1), (1,))]
    assert names == ["A", "A.C", "D"]


@pytest.mark.parametrize("path", [(2,), (0, 2), (-1,), (0, -1)])
def test_paths_without_a_message_type(path: tuple[int, ...]) -> None:
    with pytest.raises(SerializationError, match="has no message at"):
        ProtobufCodec(FILE).descriptor(path)
