"""`moldau protocol`: print the Python code compiled from the declaration of a message."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from moldau.protocol.apis import Api


def protocol(
    api: Annotated[str, typer.Argument(help="Name of an API or of a message, such as Produce.")],
    version: Annotated[int | None, typer.Argument(help="Version; the latest by default.")] = None,
) -> None:
    """Print the code that encodes and decodes a message of the protocol."""
    raise typer.Exit(print_source(api, version, sys.stdout))


def print_source(name: str, version: int | None, output: TextIO) -> int:
    """Print the code of an API's request and response, or of one of them, and return the exit code."""
    from moldau.protocol.compiler import source

    api, suffixes = _find(name)
    if api is None:
        sys.stderr.write(f"There is no API {name}.{_suggestion(name)}\n")
        return 1
    wanted = api.max_version if version is None else version
    if not api.min_version <= wanted <= api.max_version:
        sys.stderr.write(
            f"{api.name} has the versions {api.min_version} to {api.max_version}, not {wanted}.\n"
        )
        return 1
    for suffix in suffixes:
        message = api.request if suffix == "Request" else api.response
        output.write(f"# {message.__name__} version {wanted}\n{source(message, wanted)}\n")
    return 0


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    from moldau.protocol.apis import APIS

    near = get_close_matches(name, [known.name for known in APIS.values()], 1, cutoff=0.5)
    return f" Did you mean {near[0]}?" if near else ""


def _find(name: str) -> tuple[Api | None, tuple[str, ...]]:
    """Find the API that a name denotes, and which of its messages."""
    from moldau.protocol.apis import APIS

    for api in APIS.values():
        for suffixes in (("Request", "Response"), ("Request",), ("Response",)):
            ending = suffixes[0] if len(suffixes) == 1 else ""
            if name.lower() == (api.name + ending).lower():
                return api, suffixes
    return None, ()
