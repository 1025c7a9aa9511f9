"""Kafka's example connectors for text files: each line is a record."""
