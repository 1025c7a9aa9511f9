"""JSON that is validated by a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.client.registry.codecs.json_schema import JsonSchemaCodec
from moldau.client.registry.serdes.framing import frame
from moldau.http.asgi import encode_json
from moldau.rest.formats.bounds import bounded_time, use_linear_patterns
from moldau.rest.formats.plain import load


class JsonSchemaJson:
    """Records are written as JSON."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        use_linear_patterns()
        self._codec = JsonSchemaCodec(text, references)

    @property
    def name(self) -> str | None:
        return self._codec.name

    def frame(self, id: int) -> bytes:
        return frame(id)

    def encode(self, data: Any) -> bytes:
        with bounded_time():
            self._codec.check(data)
        return encode_json(data)

    def decode(self, data: bytes, indexes: tuple[int, ...] = ()) -> Any:
        return load(data)
