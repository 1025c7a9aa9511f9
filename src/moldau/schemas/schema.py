"""What the schema languages have in common: types, references, findings, and the entry point `parse`.

Each language is a package with `parse(text, references)`, imported with the first schema of that language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol


class SchemaType(StrEnum):
    """The schema languages, by their name in the REST API."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Reference(NamedTuple):
    """A schema that another schema uses: the name in the text, and the registered version it stands for."""

    name: str
    subject: str
    version: int


class InvalidSchema(Exception):
    """A text that is not a valid schema. The message is the detail, without a prefix."""


class Incompatible(NamedTuple):
    """One finding of a compatibility check."""

    #: Confluent's name of the kind, e.g. `READER_FIELD_MISSING_DEFAULT_VALUE`.
    type: str
    #: The location in the schema.
    path: str
    #: The line of a verbose answer, with `%s` for the roles of this and of the previous schema.
    message: str

    def line(self, reader: str, writer: str) -> str:
        """Return the line with the roles: "new" and "old" for BACKWARD, "old" and "new" for FORWARD."""
        return self.message.replace("%s", reader, 1).replace("%s", writer, 1)


class ParsedSchema(Protocol):
    """A valid schema of any language."""

    @property
    def schema_type(self) -> SchemaType: ...

    @property
    def name(self) -> str | None:
        """The full name of the record, of the first message, or the title."""

    @property
    def canonical(self) -> str:
        """The text that is stored, returned, compared and hashed."""

    def normalized(self) -> ParsedSchema:
        """Return the schema with the normalized text, for `normalize=true`."""

    def formatted(self, format: str) -> str:
        """Return the text in a format: "" is the canonical one; the others depend on the language."""

    def validate(self, strict: bool) -> None:
        """Raise `InvalidSchema` for what only new schemas must not have.

        `strict` is the setting `validateFields`. For Avro, this is the check of `validateNewSchemas`.
        """

    def incompatibilities(self, previous: ParsedSchema, *, lenient: bool = False) -> list[Incompatible]:
        """Return what prevents this schema from reading data written with `previous` (BACKWARD).

        FORWARD is the same check with the two schemas swapped.
        """


#: Half of a character outside of the basic plane, as such or as an escape of JSON.
_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")


def parse(schema_type: str, text: str, references: Mapping[str, str] = {}) -> ParsedSchema:
    """Parse a text; raise `InvalidSchema` if it is not valid.

    `references` maps the name of every schema used, directly and indirectly, to its text. A schema follows
    the schemas it uses.
    """
    parsed = _parse(schema_type, text, references)
    if _SURROGATE.search(text):
        try:
            parsed.canonical.encode()
        except UnicodeEncodeError as error:
            raise InvalidSchema("The schema contains an unpaired surrogate") from error
    return parsed


def _parse(schema_type: str, text: str, references: Mapping[str, str]) -> ParsedSchema:
    match schema_type:
        case SchemaType.AVRO:
            from moldau.schemas import avro

            return avro.parse(text, references)
        case SchemaType.JSON:
            from moldau.schemas import json

            return json.parse(text, references)
        case SchemaType.PROTOBUF:
            from moldau.schemas import protobuf

            return protobuf.parse(text, references)
    raise InvalidSchema(f"Invalid schema type {schema_type}")
