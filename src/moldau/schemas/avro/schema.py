"""An Avro schema of the registry: text, name, compatibility."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from moldau.schemas.avro.compatibility import incompatibilities
from moldau.schemas.avro.normalizer import normal_form
from moldau.schemas.avro.parser import Parser
from moldau.schemas.avro.printer import written
from moldau.schemas.avro.text import MAX_DEPTH, read
from moldau.schemas.avro.tree import Record, Type, full_name
from moldau.schemas.nesting import check_depth
from moldau.schemas.schema import Incompatible, InvalidSchema, ParsedSchema, SchemaType


class AvroSchema:
    """A parsed schema; `references` are the texts of the schemas it uses, in the order of their use."""

    schema_type = SchemaType.AVRO

    def __init__(self, value: Any, references: Mapping[str, str]) -> None:
        parser = Parser()
        self._references = references
        #: The names of the referenced schemas: the canonical text does not repeat their definitions.
        self._known = {full_name(parser.parse(read(text))) for text in references.values()}
        self.root: Type = parser.parse(value)
        self._violation = parser.violation
        self.canonical = written(self.root, self._known)
        if references or parser.has_unresolved:
            # A definition is written at its first use, which may nest it deeper than the text had it.
            check_depth(self.canonical, MAX_DEPTH)
        if not self.canonical.isascii():
            _check_characters(self.canonical)

    @property
    def name(self) -> str | None:
        return self.root.name.full if isinstance(self.root, Record) else None

    def normalized(self) -> AvroSchema:
        """Return the schema with sorted properties and aliases, and defaults in the type of their field."""
        return self._normalized

    @cached_property
    def _normalized(self) -> AvroSchema:
        return AvroSchema(normal_form(self.root, self._known), self._references)

    def formatted(self, format: str) -> str:
        """Return the text; `resolved` includes the definitions of the references."""
        return written(self.root) if format.strip() == "resolved" else self.canonical

    def validate(self, strict: bool) -> None:
        """Apply the rules for new schemas (`validateNewSchemas`): names of the specification, valid defaults.

        Avro has no further rules with `validateFields` (`strict`).
        """
        if self._violation is not None:
            raise InvalidSchema(self._violation)

    def incompatibilities(self, previous: ParsedSchema, *, lenient: bool = False) -> list[Incompatible]:
        if not isinstance(previous, AvroSchema):
            return [Incompatible("TYPE_MISMATCH", "/", "Incompatible because of different schema type")]
        return incompatibilities(self.root, previous.root)


def parse(text: str, references: Mapping[str, str] = {}) -> AvroSchema:
    """Parse a text; raise `InvalidSchema` if it is not an Avro schema."""
    return AvroSchema(read(text), references)


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSchema("The schema contains a lone surrogate, which UTF-8 cannot represent") from None
