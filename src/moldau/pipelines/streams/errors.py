"""What goes wrong in a streams program: when it is written (topology) and when it runs."""

from __future__ import annotations


class TopologyException(ValueError):
    """A program that makes no sense: found while it is built, before anything runs."""


class StreamsException(RuntimeError):
    """A program that failed while it ran, with the operator and the record that it failed on."""
