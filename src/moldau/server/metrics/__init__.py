"""Metrics and health of a node over HTTP; imported only if `metrics.port` is set."""
