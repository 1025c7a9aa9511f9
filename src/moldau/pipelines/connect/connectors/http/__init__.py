"""Connectors for HTTP: a source that polls, a source that receives, and a sink."""
