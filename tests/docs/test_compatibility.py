"""docs/COMPATIBILITY.md is what the code says it is, and leaves nothing unexplained."""

from __future__ import annotations

from collections import Counter

from tools import compatibility

from moldau.protocol.apis import APIS
from moldau.server.dispatch.apis import served_apis
from moldau.server.roles import BROKER
from tests.docs.markdown import ROOT


def test_the_document_is_current() -> None:
    written = (ROOT / "docs" / "COMPATIBILITY.md").read_text()
    assert written == compatibility.document(), "run: python -m tools.compatibility > docs/COMPATIBILITY.md"


def test_every_api_is_served_or_has_one_reason() -> None:
    assert compatibility.unexplained() == []
    reasons = Counter(key for reason in compatibility.NOT_SERVED for key in reason.keys)
    assert reasons.keys() <= APIS.keys()
    assert set(reasons.values()) == {1}
    assert not reasons.keys() & served_apis(BROKER).keys()


def test_every_difference_says_why() -> None:
    for differences in compatibility.DIFFERENCES.values():
        for difference in differences:
            assert difference.what.endswith(".") and difference.why.endswith(".")
