"""Spans of Produce and Fetch requests (`traces.otlp.endpoint`), imported only if they are exported.

The handlers of both APIs are wrapped when the listeners open, so a broker without tracing does nothing more
than before. A request has at most one span. It continues the trace of the first sampled `traceparent` among
the first records of the request or response, with links to the others. A span is recorded when the request is
answered.

Sampling comes first: the headers of records are read only in requests that `RequestSampler` takes. Requests
whose producers do not record their traces have no span, nor have fetches of followers and fetches that return
no records.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from opentelemetry.trace import SpanKind

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode
from moldau.base.ids import Randomness, TopicId
from moldau.base.pool import Pool
from moldau.config.broker.config import BrokerConfig
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.protocol.messages.produce import ProduceRequest, ProduceResponse
from moldau.protocol.records import BatchHeader, CorruptBatch, read_batch_header
from moldau.protocol.schema import Buffer, Message
from moldau.server.dispatch.context import Handler, HandlerResult, Pending, RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.startup.identity import Identity
from moldau.tracing import attributes
from moldau.tracing.contexts import TraceContext, batch_contexts
from moldau.tracing.spans import SpanExport

#: Called with the response, or with None and the exception of the handler.
Finish = Callable[[Any, Exception | None], None]
_RATIO_BITS = 32


class RequestSampler:
    """Decides which requests are traced: a share of them, and a bounded number per second."""

    def __init__(self, ratio: float, max_per_second: int, clock: Clock, randomness: Randomness) -> None:
        self._below = int(ratio * (1 << _RATIO_BITS))
        self._max_per_second = max_per_second
        self._clock = clock
        self._randomness = randomness
        self._second = -1
        self._taken = 0

    def take(self) -> bool:
        if self._randomness.getrandbits(_RATIO_BITS) >= self._below:
            return False
        second = int(self._clock.monotonic())
        if second != self._second:
            self._second, self._taken = second, 0
        if self._taken >= self._max_per_second:
            return False
        self._taken += 1
        return True


class RequestTracing:
    def __init__(
        self,
        export: SpanExport,
        sampler: RequestSampler,
        metadata: MetadataPublisher,
        clock: Clock,
        pool: Pool,
    ) -> None:
        self._export = export
        self._clock = clock
        self._sampler = sampler
        self._metadata = metadata
        self._pool = pool

    @classmethod
    def of(
        cls,
        config: BrokerConfig,
        identity: Identity,
        metadata: MetadataPublisher,
        clock: Clock,
        randomness: Randomness,
        pool: Pool,
    ) -> RequestTracing:
        resource = {
            "service.instance.id": str(identity.node_id),
            attributes.CLUSTER_ID: identity.cluster_id,
        }
        export = SpanExport(config["traces.otlp.endpoint"], "moldau-broker", resource)
        ratio, most = config["traces.sampling.ratio"], config.integer("traces.max.per.second")
        return cls(export, RequestSampler(ratio, most, clock, randomness), metadata, clock, pool)

    def traced(self, handlers: Mapping[int, Handler]) -> dict[int, Handler]:
        """Return the handlers of a listener, those of Produce and Fetch with spans."""
        return {
            **handlers,
            ApiKey.PRODUCE: partial(self._produce, handlers[ApiKey.PRODUCE]),
            ApiKey.FETCH: partial(self._fetch, handlers[ApiKey.FETCH]),
        }

    async def close(self) -> None:
        await self._pool.run(self._export.close)

    # Produce.

    def _produce(self, handler: Handler, context: RequestContext, request: ProduceRequest) -> HandlerResult:
        if not self._sampler.take():
            return handler(context, request)
        start_ns = self._clock.time_ns()
        # Before the handler, after which the bytes of the request may be reused.
        contexts = batch_contexts(_produced_batches(request))
        if not _is_recorded(contexts):
            return handler(context, request)
        records = _records_count(request)
        return _observed(
            handler, context, request, partial(self._produced, context, start_ns, contexts, records)
        )

    def _produced(
        self,
        context: RequestContext,
        start_ns: int,
        contexts: list[TraceContext],
        records: int,
        response: ProduceResponse | None,
        error: Exception | None,
    ) -> None:
        answers = [
            (self._topic(topic.name, topic.topic_id), each.index, each.base_offset, each.error_code)
            for topic in (() if response is None else response.responses)
            for each in topic.partition_responses
        ]
        failed = next((code for *_, code in answers if code), 0)
        details = _destination([(topic, index, offset) for topic, index, offset, _ in answers])
        details[attributes.RECORDS] = records
        reason = ErrorCode.of(failed).name if failed else None if error is None else type(error).__name__
        self._record("Produce", context, start_ns, contexts, details, reason)

    # Fetch.

    def _fetch(self, handler: Handler, context: RequestContext, request: FetchRequest) -> HandlerResult:
        if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
            return handler(context, request)
        return _observed(handler, context, request, partial(self._fetched, context, self._clock.time_ns()))

    def _fetched(
        self,
        context: RequestContext,
        start_ns: int,
        response: FetchResponse | None,
        error: Exception | None,
    ) -> None:
        if response is None:
            return
        found = [
            (topic, each)
            for topic in response.responses
            for each in topic.partitions
            if each.records is not None and len(each.records)
        ]
        if not found or not self._sampler.take():
            return
        batches = [_first_part(each.records) for _, each in found]
        contexts = batch_contexts(batches)
        if not _is_recorded(contexts):
            return
        details = _destination(
            [(self._topic(topic.topic, topic.topic_id), each.partition_index, -1) for topic, each in found]
        )
        first = _header(batches[0])
        if first is not None and len(found) == 1:
            details[attributes.OFFSET] = first.base_offset
        self._record("Fetch", context, start_ns, contexts, details, None)

    # Both.

    def _record(
        self,
        api: str,
        context: RequestContext,
        start_ns: int,
        contexts: list[TraceContext],
        details: dict[str, str | int],
        error: str | None,
    ) -> None:
        parent = next((each for each in contexts if each.sampled), None)
        topic = details.get(attributes.TOPIC)
        self._export.record(
            api if topic is None else f"{api} {topic}",
            SpanKind.SERVER,
            {
                attributes.SYSTEM: attributes.KAFKA,
                attributes.OPERATION_NAME: api,
                attributes.CLIENT_ID: context.client_id or "",
                "client.address": context.client_host,
                **details,
            },
            start_ns=start_ns,
            end_ns=self._clock.time_ns(),
            parent=parent,
            links=[each for each in contexts if each != parent],
            error=error,
        )

    def _topic(self, name: str, topic_id: TopicId) -> str:
        """Return the name of a topic, which newer versions of both APIs do not have."""
        found = self._metadata.image.topics.by_id.get(topic_id)
        return name if found is None else found.name


def _observed(handler: Handler, context: RequestContext, request: Message, finish: Finish) -> HandlerResult:
    """Call the handler, and `finish` when it has answered or failed."""
    try:
        result = handler(context, request)
    except Exception as error:
        finish(None, error)
        raise
    if result is None or isinstance(result, Message):
        finish(result, None)
        return result
    if isinstance(result, Pending):
        return result._replace(response=_later(result.response, finish))
    return _later(result, finish)


async def _later(result: Awaitable[Message | None], finish: Finish) -> Message | None:
    try:
        response = await result
    except Exception as error:
        finish(None, error)
        raise
    finish(response, None)
    return response


def _is_recorded(contexts: list[TraceContext]) -> bool:
    """Return whether a producer records its trace; without any trace, the span begins a new one."""
    return not contexts or any(each.sampled for each in contexts)


def _produced_batches(request: ProduceRequest) -> Iterator[Buffer]:
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                yield data.records


def _records_count(request: ProduceRequest) -> int:
    """Return the number of records as the headers of the batches say."""
    headers = map(_header, _produced_batches(request))
    return sum(each.records_count for each in headers if each is not None)


def _destination(found: list[tuple[str, int, int]]) -> dict[str, str | int]:
    """Return topic, partition and first offset, as far as all of a request have them in common."""
    topics = {topic for topic, _, _ in found}
    details: dict[str, str | int] = {attributes.TOPIC: topics.pop()} if len(topics) == 1 else {}
    if len(found) == 1:
        _, index, offset = found[0]
        details[attributes.PARTITION] = str(index)
        if offset >= 0:
            details[attributes.OFFSET] = offset
    return details


def _first_part(records: Any) -> Buffer:
    part: Buffer = records[0] if isinstance(records, list) else records
    return part


def _header(batch: Buffer) -> BatchHeader | None:
    try:
        return read_batch_header(batch)
    except CorruptBatch:
        return None
