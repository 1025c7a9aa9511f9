"""Protobuf schemas: parsing, canonical text, descriptors and compatibility.

The text is parsed to elements that keep the declaration order. The canonical text is printed from them, and
descriptors of the package `protobuf` are built from them when a schema is linked.
"""

from __future__ import annotations

from moldau.schemas.protobuf.schema import ProtobufSchema, parse

__all__ = ["ProtobufSchema", "parse"]
