"""JSONata rules through the package `jsonata-python` (the extra `moldau[rules]`); migrations use them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jsonata

from moldau.client.registry.rules.messages import is_message, message_of, to_plain
from moldau.client.registry.rules.rule import CONDITION, Context, FieldWalk, Rule


class JsonataExecutor:
    """Evaluates an expression on the whole value."""

    def run(self, rule: Rule, context: Context, value: Any, walk: FieldWalk) -> Any:
        result = _expression(rule.expr or "$").evaluate(to_plain(value))
        if rule.kind == CONDITION or not is_message(value):
            return result
        return message_of(result, value)


@lru_cache(maxsize=1000)
def _expression(text: str) -> Any:
    return jsonata.Jsonata(text)
