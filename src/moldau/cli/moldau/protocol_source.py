"""`moldau protocol`: the Python that the declarations of the protocol are compiled to."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import TextIO

from moldau.protocol.apis import APIS, Api
from moldau.protocol.schema import Message


def print_source(name: str, version: int | None, output: TextIO) -> int:
    """Write the source of an API's messages, or of one of them; 1 and a sentence if there is none."""
    from moldau.protocol.compiler import source

    api, suffixes = _find(name)
    if api is None:
        near = get_close_matches(name, [known.name for known in APIS.values()], 1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        sys.stderr.write(f"There is no API {name}.{hint}\n")
        return 1
    wanted = api.max_version if version is None else version
    if not api.min_version <= wanted <= api.max_version:
        sys.stderr.write(
            f"{api.name} has the versions {api.min_version} to {api.max_version}, not {wanted}.\n"
        )
        return 1
    for suffix in suffixes:
        message: type[Message] = api.request if suffix == "Request" else api.response
        output.write(f"# {message.__name__} version {wanted}\n{source(message, wanted)}\n")
    return 0


def _find(name: str) -> tuple[Api | None, tuple[str, ...]]:
    """The API of a name, and which of its messages the name means."""
    for api in APIS.values():
        for suffixes in (("Request", "Response"), ("Request",), ("Response",)):
            ending = suffixes[0] if len(suffixes) == 1 else ""
            if name.lower() == (api.name + ending).lower():
                return api, suffixes
    return None, ()
