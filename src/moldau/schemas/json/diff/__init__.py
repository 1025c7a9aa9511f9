"""Compatibility of JSON schemas: the differences of two schemas, each of a compatible kind or not."""
