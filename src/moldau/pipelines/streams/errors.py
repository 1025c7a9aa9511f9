"""The errors of streams programs: invalid topologies, and failures at run time."""

from __future__ import annotations

from moldau.client.serdes import SerializationError


class TopologyException(ValueError):
    """An invalid program, detected while its topology is built."""


class StreamsException(RuntimeError):
    """A program that failed at run time; the message names the operator and the record."""


def failure(name: str, where: str, error: Exception) -> StreamsException:
    """Return the exception for an operator that failed on a record."""
    if isinstance(error, SerializationError):
        return StreamsException(
            f"{name} cannot deserialize {where} or serialize its result: {error}. "
            "Configure serdes that match the data"
        )
    return StreamsException(f"{name} failed on {where}: {type(error).__name__}: {error}")
