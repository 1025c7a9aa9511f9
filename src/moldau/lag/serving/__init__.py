"""Verdicts over HTTP: Prometheus metrics and Burrow's API."""
