"""The admin client. `AdminClient`, `AsyncAdminClient` and `checked` are imported when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient, AsyncAdminClient, checked

__all__ = ["AdminClient", "AsyncAdminClient", "checked"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("moldau.client.admin.client"), name)
