"""The exceptions that leave `protocol`: for reading messages, for writing them, for record batches."""

from __future__ import annotations


class DecodeError(ValueError):
    """Bytes that are not the message they claim to be; the only exception that leaves decoding."""


class EncodeError(ValueError):
    """A message that cannot be written in the version asked for."""


class CorruptBatch(ValueError):
    """A record batch, or the compressed payload of one, that does not hold together."""


class DecompressionBomb(CorruptBatch):
    """A payload that would grow past the bound it was given."""
