"""What goes wrong in a streams program: when it is written (topology) and when it runs."""

from __future__ import annotations

from moldau.client.serdes import SerializationError


class TopologyException(ValueError):
    """A program that makes no sense: found while it is built, before anything runs."""


class StreamsException(RuntimeError):
    """A program that failed while it ran, with the operator and the record that it failed on."""


def failure(name: str, where: str, error: Exception) -> StreamsException:
    """What an operator says that failed on a record, in words for the one who wrote the program."""
    if isinstance(error, SerializationError):
        return StreamsException(
            f"{name} cannot decode {where} or encode what became of it: {error}. "
            "The serdes there must fit the data"
        )
    return StreamsException(f"{name} failed on {where}: {type(error).__name__}: {error}")
