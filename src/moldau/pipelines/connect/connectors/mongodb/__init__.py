"""Connectors for MongoDB: a source of change streams, and a sink."""
