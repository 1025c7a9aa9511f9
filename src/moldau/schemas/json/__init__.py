"""JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12: parsing, references and compatibility."""

from moldau.schemas.json.schema import JsonSchema, parse

__all__ = ["JsonSchema", "parse"]
