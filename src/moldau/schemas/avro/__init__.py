"""Avro schemas with the rules of Java's Avro library, which every Confluent client and registry uses."""

from moldau.schemas.avro.schema import AvroSchema, parse

__all__ = ["AvroSchema", "parse"]
