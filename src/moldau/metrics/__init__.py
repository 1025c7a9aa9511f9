"""Metrics: the table of all families, latency recorders, and Prometheus' text formats. Pure."""
