"""Converters between the bytes of a topic and Connect's values."""
