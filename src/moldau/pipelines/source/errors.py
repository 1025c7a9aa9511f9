"""The errors of the source; each message names the remedy."""

from __future__ import annotations


class SourceError(RuntimeError):
    """The source cannot continue."""


class DataLoss(SourceError):
    """Records of the requested range no longer exist, and `failOnDataLoss` is true."""


class ForeignCheckpoint(SourceError):
    """The checkpoint belongs to another query."""
