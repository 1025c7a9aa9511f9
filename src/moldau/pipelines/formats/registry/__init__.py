"""Formats whose records name a schema of a schema registry: AVRO, JSON_SR and PROTOBUF."""
