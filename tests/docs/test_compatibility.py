"""docs/COMPATIBILITY.md is current and complete."""

from __future__ import annotations

from collections import Counter

from moldau.protocol.apis import APIS
from moldau.server.dispatch.apis import served_apis
from moldau.server.settings import BROKER
from tests.docs.markdown import ROOT
from tools.compatibility.page import document, unexplained
from tools.compatibility.tables import DIFFERENCES, NOT_SERVED


def test_document_is_current() -> None:
    written = (ROOT / "docs" / "COMPATIBILITY.md").read_text()
    assert written == document(), "run: python -m tools.compatibility > docs/COMPATIBILITY.md"


def test_every_api_is_served_or_has_one_reason() -> None:
    assert unexplained() == []
    reasons = Counter(key for reason in NOT_SERVED for key in reason.keys)
    assert reasons.keys() <= APIS.keys()
    assert set(reasons.values()) <= {1}
    assert not reasons.keys() & served_apis(BROKER).keys()


def test_every_difference_has_a_reason() -> None:
    for differences in DIFFERENCES.values():
        for difference in differences:
            assert difference.what.endswith(".") and difference.why.endswith(".")
