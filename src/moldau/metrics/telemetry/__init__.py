"""Metrics that clients push (KIP-714): subscriptions, OTLP, and the last value of every series. Pure."""
