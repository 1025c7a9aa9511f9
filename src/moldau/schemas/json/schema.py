"""A parsed JSON schema.

Parsing checks that the text is JSON. The schema itself is loaded when it is needed first, by `validate` or a
compatibility check: most stored schemas are only returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from moldau.schemas.json import text
from moldau.schemas.json.documents import Documents, SchemaError, draft_of
from moldau.schemas.json.model import Anything, Nothing, Object, Schema
from moldau.schemas.schema import Incompatible, InvalidSchema, ParsedSchema, SchemaType

if TYPE_CHECKING:
    from moldau.schemas.json.tags import Tags

#: The number of findings of a check; hostile schemas have more than memory could hold.
MAX_FINDINGS = 1000


class JsonSchema:
    """A JSON schema of any draft, with the schemas it refers to."""

    schema_type = SchemaType.JSON

    def __init__(self, document: Any, references: Mapping[str, str]) -> None:
        """`document` is the parsed text; `references` maps names to texts."""
        self.document = document
        self.references = references

    @property
    def name(self) -> str | None:
        """The title."""
        if not isinstance(self.document, dict) or "title" not in self.document:
            return None
        title = self.document["title"]
        if isinstance(title, dict | list):
            return ""
        return title if isinstance(title, str) else text.scalar(title)

    @cached_property
    def canonical(self) -> str:
        """The compact text, with the keys in their order."""
        return text.write(self.document)

    @cached_property
    def documents(self) -> Documents:
        """The documents that the schema consists of."""
        return Documents(self.document, self.references, draft_of(self.document))

    @cached_property
    def root(self) -> Schema:
        """The loaded schema; raises `InvalidSchema`."""
        if isinstance(self.document, bool):
            return Anything() if self.document else Nothing()
        if not isinstance(self.document, dict):
            kind = _node_type(self.document)
            raise InvalidSchema(
                f"Invalid JSON schema: expected an object or boolean at the root, found {kind}"
            )
        try:
            return self._load()
        except SchemaError as error:
            # The text is Confluent's; the cause says what is wrong.
            raise InvalidSchema("Invalid JSON") from error

    def _load(self) -> Schema:
        from moldau.schemas.json import classic, modern
        from moldau.schemas.json.loading import Loading

        draft = draft_of(self.document)
        return Loading(self.documents, modern.loader() if draft.modern else classic.loader(draft)).load()

    def normalized(self) -> JsonSchema:
        """Return the schema with sorted keys."""
        return JsonSchema(text.read(text.write(self.document, sort_keys=True)), self.references)

    def formatted(self, format: str) -> str:
        """Return the canonical text: JSON Schema has no other formats."""
        return self.canonical

    def validate(self, strict: bool) -> None:
        """Load the schema; `strict` forbids properties that begin with `$$`."""
        root = self.root
        if not strict or not isinstance(root, Object):
            return
        for name in root.properties or {}:
            if name.startswith("$$"):
                raise InvalidSchema(f"#/properties/{name}: Field names cannot start with $$ prefix")

    def tags(self) -> list[tuple[str, str, list[str]]]:
        """Return kind, path and tags of the objects and properties that have tags."""
        from moldau.schemas.json.tags import tagged_entities

        return tagged_entities(self)

    def with_tags(self, added: Tags, removed: Tags) -> str:
        """Return the text with other tags; raise `InvalidSchema` for an unknown object or property."""
        from moldau.schemas.json.tags import with_tags

        return with_tags(self.document, added, removed)

    def incompatibilities(self, previous: ParsedSchema, *, lenient: bool = False) -> list[Incompatible]:
        """Return what prevents this schema from reading data written with `previous`."""
        from moldau.schemas.json.diff import kinds
        from moldau.schemas.json.diff.compare import compare

        if not isinstance(previous, JsonSchema):
            return [Incompatible("", "", "Incompatible because of different schema type")]
        findings = compare(previous.root, self.root, kinds.LENIENT if lenient else kinds.STRICT)
        return [
            Incompatible(kind, path, kinds.line(kind, path, "new", "old"))
            for kind, path in islice(findings.incompatible(), MAX_FINDINGS)
        ]


def _node_type(value: Any) -> str:
    """Return Jackson's name of a JSON type."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "STRING"
    return "ARRAY" if isinstance(value, list) else "NUMBER"


def parse(source: str, references: Mapping[str, str] = {}) -> JsonSchema:
    """Parse a text; raise `InvalidSchema` if it is not JSON. The schema itself is checked by `validate`."""
    return JsonSchema(text.read(source), references)
