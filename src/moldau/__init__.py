"""Moldau: an event-streaming platform in Python that speaks the Kafka wire protocol."""

__version__ = "0.1.0"
