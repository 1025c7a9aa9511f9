"""The schema languages of the registry: Avro, JSON Schema and Protobuf.

Pure: a text becomes a parsed schema with a canonical text and compatibility checks. Nothing is read from a
network or disk.
"""
