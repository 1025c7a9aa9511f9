"""Connectors for Redis: sources of streams and of keys, and a sink."""
