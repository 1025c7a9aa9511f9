"""The audit log: every outcome of a request has a line, and a line that is repeated is counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.log_throttle import Repeats
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from moldau.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from moldau.server.dispatch import audit
from moldau.server.dispatch.audit import audited, login_failed
from tests.unit.server.granted import context

DELETE = DeleteTopicsRequest(topic_names=["orders"])
DELETED = DeleteTopicsResponse(
    responses=[DeletableTopicResult(name="orders", error_code=ErrorCode.TOPIC_DELETION_DISABLED)]
)


@pytest.fixture(autouse=True)
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The records of the audit log, which remembers no lines of other tests."""
    monkeypatch.setattr(audit, "_repeats", Repeats())
    caplog.set_level(logging.INFO, audit.AUDIT_LOGGER)
    found: list[Any] = []
    handler = logging.Handler()
    handler.emit = found.append  # type: ignore[method-assign]
    logger = logging.getLogger(audit.AUDIT_LOGGER)
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def outcomes(lines: list[Any]) -> list[tuple[str, str]]:
    return [(each.fields["api"], each.fields["outcome"]) for each in lines]


def handlers(handler: Any, key: int = ApiKey.DELETE_TOPICS) -> Any:
    return audited({key: handler})[key]


def failing(error: Exception) -> Any:
    def handle(*_: object) -> None:
        raise error

    return handle


def failing_later(error: Exception) -> Any:
    async def handle(*_: object) -> None:
        raise error

    return handle


@pytest.mark.parametrize("failing", [failing, failing_later])
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KafkaError(ErrorCode.NOT_CONTROLLER), "NOT_CONTROLLER"),
        (RuntimeError("a bug"), "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_a_failure_is_logged(lines: list[Any], failing: Any, error: Exception, outcome: str) -> None:
    async def scenario() -> None:
        with pytest.raises(type(error)):
            result = handlers(failing(error))(context(), DELETE)
            await result

    asyncio.run(scenario())
    assert outcomes(lines) == [("DeleteTopics", outcome)]
    assert lines[0].fields["resources"] == ["orders"]


def test_a_request_whose_client_disconnects_is_logged(lines: list[Any]) -> None:
    async def waiting(*_: object) -> DeleteTopicsResponse:
        await asyncio.Event().wait()
        return DELETED

    async def scenario() -> None:
        task = asyncio.ensure_future(handlers(waiting)(context(), DELETE))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    assert outcomes(lines) == [("DeleteTopics", "CONNECTION_CLOSED")]


def test_errors_in_a_response_are_its_outcome(lines: list[Any]) -> None:
    assert handlers(lambda *_: DELETED)(context(), DELETE) is DELETED
    assert outcomes(lines) == [("DeleteTopics", "TOPIC_DELETION_DISABLED")]


def test_commits_of_members_are_no_administration(lines: list[Any]) -> None:
    commit = handlers(lambda *_: OffsetCommitResponse(), ApiKey.OFFSET_COMMIT)
    commit(context(), OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=3, member_id="m"))
    assert lines == []
    commit(context(), OffsetCommitRequest(group_id="g"))
    assert outcomes(lines) == [("OffsetCommit", "NONE")]


def test_a_consumer_that_is_no_member_is_logged_once_a_minute(
    lines: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((0.0, 1.0, 59.0, 60.0, 61.0))
    monkeypatch.setattr(audit, "_repeats", Repeats(lambda: next(clock)))
    commit = handlers(lambda *_: OffsetCommitResponse(), ApiKey.OFFSET_COMMIT)
    for _ in range(5):
        commit(context(), OffsetCommitRequest(group_id="g"))
    assert [each.fields.get("repeated") for each in lines] == [None, 2]
    assert lines[1].getMessage().endswith("NONE (2 more since the last line)")


def test_requests_that_always_are_administrative_are_all_logged(lines: list[Any]) -> None:
    for _ in range(3):
        handlers(lambda *_: DELETED)(context(), DELETE)
    assert len(lines) == 3


def test_failed_logins_are_logged_without_forged_lines(lines: list[Any]) -> None:
    login_failed("CLIENTS", "10.0.0.9", "PLAIN", "wrong\npassword")
    (line,) = lines
    assert line.event == "login.failed"
    assert (line.fields["mechanism"], line.fields["client"]) == ("PLAIN", "10.0.0.9")
    assert "\n" not in line.getMessage()
