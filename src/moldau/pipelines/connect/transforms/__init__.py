"""Kafka's transformations and predicates, and the chain of a connector."""
