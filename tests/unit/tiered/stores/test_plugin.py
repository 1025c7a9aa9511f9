"""Whatever a store raises or returns, the caller gets a `RemoteStoreError`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moldau.tiered.stores.interface import RemoteSegmentMissing, RemoteStoreError
from moldau.tiered.stores.plugin import StorePlugin
from tests.harness.tiered.segments import Source, segment


class Broken:
    """Raises or returns the same thing everywhere."""

    def __init__(self, configs: Mapping[str, Any]) -> None:
        self._raised, self._returned = configs.get("raise"), configs.get("return")

    def _do(self, *_arguments: object) -> Any:
        if self._raised is not None:
            raise self._raised
        return self._returned

    copy = read = read_indexes = delete = close = _do


def calls(store: StorePlugin) -> list[tuple[Any, tuple[Any, ...]]]:
    item, source = segment(1, 0, 9), Source(0, [b"x"])
    return [
        (store.copy, (item, source)),
        (store.read, (item, 0, 10)),
        (store.read_indexes, (item,)),
        (store.delete, (item,)),
    ]


@pytest.mark.parametrize("error", [KeyError("x"), OSError("gone"), RuntimeError(), AssertionError("no")])
def test_any_exception_is_a_failed_call(error: Exception) -> None:
    store = StorePlugin(Broken({"raise": error}))
    for call, arguments in calls(store):
        with pytest.raises(RemoteStoreError, match=type(error).__name__):
            call(*arguments)
    store.close()


def test_the_errors_of_a_store_stay_what_they_are() -> None:
    for call, arguments in calls(StorePlugin(Broken({"raise": RemoteSegmentMissing("gone")}))):
        with pytest.raises(RemoteSegmentMissing, match=r"^gone$"):
            call(*arguments)


def test_results_of_another_type_are_a_failed_call() -> None:
    copy, read, read_indexes, _ = calls(StorePlugin(Broken({"return": "text"})))
    for call, arguments in (copy, read, read_indexes):
        with pytest.raises(RemoteStoreError, match="returned str instead of"):
            call(*arguments)
