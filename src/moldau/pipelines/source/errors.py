"""What a source raises, so that whoever started the query reads what to do."""

from __future__ import annotations


class InvalidOption(ValueError):
    """An option that makes no sense."""


class SourceError(RuntimeError):
    """The source cannot go on."""


class DataLoss(SourceError):
    """Records that were to be read are not there any more, and `failOnDataLoss` says to stop then."""


class ForeignCheckpoint(SourceError):
    """A checkpoint that belongs to another query."""
