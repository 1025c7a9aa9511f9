"""Embedded formats of records: JSON of a request ↔ bytes of a record."""
