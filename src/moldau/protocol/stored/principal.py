"""A principal as an Envelope request carries it to the controller."""

from __future__ import annotations

from moldau.protocol.schema import Message, bool_, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: str = string("0+")
    name: str = string("0+")
    token_authenticated: bool = bool_("0+")
