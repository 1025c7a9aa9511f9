"""The exceptions of `protocol`: for decoding, for encoding, for record batches."""

from __future__ import annotations


class DecodeError(ValueError):
    """Bytes that are not a valid message; the only exception that decoding raises."""


class EncodeError(ValueError):
    """A message that cannot be encoded in the requested version."""


class CorruptBatch(ValueError):
    """A damaged record batch, or a damaged compressed payload."""


class DecompressionBomb(CorruptBatch):
    """A payload that exceeds its bound when decompressed."""
