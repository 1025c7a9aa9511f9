"""Protobuf's JSON mapping ↔ its binary encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format

from moldau.client.registry.codecs.protobuf import ProtobufCodec
from moldau.client.registry.serdes.framing import frame
from moldau.rest.errors import bad_request


class ProtobufJson:
    """Records are written as the first message of the file."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        self._codec = ProtobufCodec(text, references)

    @property
    def name(self) -> str | None:
        return self._codec.name

    def frame(self, id: int) -> bytes:
        return frame(id, (0,))

    def encode(self, data: Any) -> bytes:
        message = self._codec.message_class()()
        if not isinstance(data, dict):
            raise bad_request("The data of a protobuf message must be an object.")
        try:
            json_format.ParseDict(data, message)
        except json_format.ParseError as error:
            raise bad_request(str(error)) from None
        return message.SerializeToString()

    def decode(self, data: bytes, indexes: tuple[int, ...] = ()) -> Any:
        message = self._codec.decode(data, indexes)
        return json_format.MessageToDict(
            message, always_print_fields_with_no_presence=True, preserving_proto_field_name=True
        )
