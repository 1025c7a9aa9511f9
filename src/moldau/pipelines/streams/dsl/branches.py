"""The branches of `KStream.split`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.pipelines.streams.dsl.parameters import Branched, Function
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import Branch, Split

if TYPE_CHECKING:
    from moldau.pipelines.streams.dsl.kstream import KStream


class BranchedKStream:
    """The branches of a split. Each is named after the split and its own name or number."""

    def __init__(self, source: KStream, splitter: Node) -> None:
        self._source = source
        self._splitter = splitter
        self._branches: dict[str, KStream] = {}

    def branch(self, predicate: Function, branched: Branched | str | None = None) -> BranchedKStream:
        """What no earlier branch has taken, and what the predicate holds for."""
        predicates = self._predicates
        predicates.append(predicate)
        self._add(branched, len(predicates), len(predicates) - 1)
        return self

    def default_branch(self, branched: Branched | str | None = None) -> dict[str, KStream]:
        """The rest; and all branches by their names."""
        self._add(branched, 0, None)
        return self._branches

    def no_default_branch(self) -> dict[str, KStream]:
        """All branches by their names; the rest is dropped."""
        return self._branches

    @property
    def _predicates(self) -> list[Function]:
        operation = self._splitter.operation
        return operation.predicates if isinstance(operation, Split) else []

    def _add(self, branched: Branched | str | None, number: int, position: int | None) -> None:
        given = Branched(branched) if isinstance(branched, str) else branched or Branched()
        name = f"{self._splitter.name}{number if given.name is None else given.name}"
        source = self._source
        source.graph.new_name(name)
        node = Node(name, Branch(position), (self._splitter,), source.key_serde, source.value_serde)
        source.graph.add(self._splitter, node)
        stream: KStream | None = type(source)(
            source.graph, node, repartition_required=source.repartition_required
        )
        if given.chain is not None:
            stream = given.chain(stream)
        if stream is not None:
            self._branches[name] = stream
