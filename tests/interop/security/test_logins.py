"""The same logins to Apache Kafka and to Moldau: the same answers, messages and closings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.security.secured_node import SecuredNode
from tests.interop.security.login_scenes import SCENES, Probe

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]


def _transcript(node: SecuredNode, name: str) -> list[tuple[str, Any]]:
    probe = Probe(node)
    try:
        SCENES[name](probe)
    finally:
        probe.close()
    return probe.transcript


@pytest.mark.parametrize("name", SCENES)
def test_logins_are_answered_like_apache_kafka(
    name: str, secured_apache: SecuredNode, secured_moldau: SecuredNode
) -> None:
    theirs, ours = _transcript(secured_apache, name), _transcript(secured_moldau, name)
    assert [label for label, _ in ours] == [label for label, _ in theirs]
    different = [
        f"[{label}] Apache {first}, Moldau {second}"
        for (label, first), (_, second) in zip(theirs, ours, strict=True)
        if first != second
    ]
    assert not different, "\n" + "\n".join(different)
