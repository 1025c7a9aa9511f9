"""Errors of metadata records."""

from __future__ import annotations


class InconsistentMetadata(Exception):
    """A record does not fit the state before it: the log is damaged or was not written by a controller."""
