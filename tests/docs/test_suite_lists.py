"""The lists of other projects' test suites are well-formed, complete and counted in docs/COMPATIBILITY.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.suites import listing
from tests.interop.suites.catalog import SUITES
from tests.interop.suites.suite import Outcome, Suite
from tools.compatibility.suites import LISTS, suite_counts


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_every_result_is_a_pass_or_has_its_reason(suite: Suite) -> None:
    known = listing.read(suite)
    assert known.results
    for test, results in known.results.items():
        assert set(results) == set(listing.BROKERS), test
        for outcome in results.values():
            assert outcome == Outcome("pass") or (outcome.result in ("fail", "skip") and outcome.reason), test


def test_counts_of_the_document_equal_the_lists() -> None:
    assert len(list(LISTS.glob("*.txt"))) == len(SUITES)
    counts = {each.package: each for each in suite_counts()}
    for suite in SUITES.values():
        known = listing.read(suite)
        count = counts[suite.package]
        assert (count.total, count.moldau) == (len(known.results), len(known.passes("moldau")))
        assert count.apache == len(known.passes("apache"))


def test_an_update_never_removes_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_FOLDER", tmp_path)
    suite = next(iter(SUITES.values()))
    known = listing.read(suite)
    assert known.record("moldau", {"a": Outcome("pass"), "b": Outcome("fail", "groups")}) == []
    assert known.record("moldau", {"a": Outcome("fail", "x"), "b": Outcome("fail", "y")}) == ["a"]
    known.only(["a", "b", "c"])
    listing.write(suite, known)
    again = listing.read(suite)
    assert again.passes("moldau") == ["a"]
    assert again.outcome("b", "moldau") == Outcome("fail", "groups")
    assert again.outcome("c", "apache").reason == "not run yet"
