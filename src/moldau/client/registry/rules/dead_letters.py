"""The action DLQ: send a record whose rule failed to a dead letter topic, then fail it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from moldau.client.records import Headers
from moldau.client.registry.rules.engine import RULE_NAME, RuleError
from moldau.client.registry.rules.rule import Context, Rule

#: Topic, value, headers: sends a record.
Send = Callable[[str, bytes | None, Headers], Any]


class DeadLetters:
    """Sends the value as it is (bytes) or as JSON, with headers that say which rule failed.

    `send` is given, for example `lambda topic, value, headers: producer.send(topic, value, headers=headers)`.
    The topic is this one, or the rule's parameter `dlq.topic`.
    """

    def __init__(self, send: Send, topic: str | None = None) -> None:
        self._send = send
        self._topic = topic

    def run(self, rule: Rule, context: Context, value: Any, error: Exception | None) -> None:
        topic = self._topic or rule.params.get("dlq.topic")
        if not topic:
            raise RuleError(f"The rule {rule.name} has no dead letter topic: set dlq.topic") from error
        self._send(topic, _to_bytes(value), [*context.headers, *_headers(rule, context, error)])
        raise RuleError(
            f"{context.topic}: the rule {rule.name} failed, the record was sent to {topic}"
        ) from error


def _headers(rule: Rule, context: Context, error: Exception | None) -> list[tuple[str, bytes]]:
    named = {
        RULE_NAME: rule.name,
        "__rule.mode": context.mode,
        "__rule.subject": context.subject,
        "__rule.topic": context.topic,
    }
    if error is not None:
        named["__rule.exception"] = str(error)
    return [(name, text.encode()) for name, text in named.items()]


def _to_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "DESCRIPTOR"):
        from google.protobuf import json_format

        return json_format.MessageToJson(value).encode()
    return json.dumps(value, default=str, ensure_ascii=False).encode()
