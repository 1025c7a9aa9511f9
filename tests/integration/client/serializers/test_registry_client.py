"""The registry clients: failover, errors, and operations that serializers do not use."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from moldau.client.registry import (
    AsyncRegistryClient,
    AvroSerializer,
    ProtobufSerializer,
    RegistryClient,
    RegistryError,
    Schema,
)
from moldau.client.serdes import SerializationError
from tests.harness.registry.instances import choose_port

TEXT = '{"type":"record","name":"Client","fields":[{"name":"id","type":"string"}]}'
LONGER = (
    '{"type":"record","name":"Client","fields":[{"name":"id","type":"string"},{"name":"n","type":"int"}]}'
)


def test_next_url_is_used_if_one_is_down(registry_url: str) -> None:
    dead = f"http://127.0.0.1:{choose_port()}"
    with RegistryClient(f"{dead},{registry_url}") as client:
        id = client.register("failover-value", Schema(TEXT)).id
        client.clear_caches()
        begun = time.monotonic()
        assert client.schema_by_id(id).text == TEXT
        # The URL that answered is the first one of the next call.
        assert time.monotonic() - begun < 0.5


def test_registry_that_does_not_answer_is_an_error_after_the_retries() -> None:
    with socket.create_server(("127.0.0.1", choose_port())) as silent:
        settings = {
            "url": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "timeout": 0.2,
            "max.retries": 1,
            "retries.wait.ms": 10,
        }
        with (
            RegistryClient(settings) as client,
            pytest.raises(RegistryError, match="cannot be reached") as no,
        ):
            client.subjects()
    assert (no.value.status, no.value.error_code) == (0, -1)


def test_operations_of_the_asynchronous_client(registry_url: str) -> None:
    async def scenario() -> None:
        async with AsyncRegistryClient(registry_url) as client:
            registered = await client.register("async-value", Schema(TEXT))
            assert [await client.schema_by_id(registered.id) for _ in range(2)] == [Schema(TEXT)] * 2
            assert (await client.versions_of_id(registered.id))[-1].subject
            tested = await client.test_compatibility("async-value", Schema(LONGER))
            assert not tested.is_compatible
            assert "READER_FIELD_MISSING_DEFAULT_VALUE" in tested.messages[0]
            with pytest.raises(RegistryError) as refused:
                await client.register("async-value", Schema(LONGER))
            assert refused.value.status == 409
            assert await client.set_config("async-value", {"compatibility": "NONE"})
            assert (await client.register("async-value", Schema(LONGER))).version == 2
            assert await client.delete_subject("async-value") == [1, 2]
            with pytest.raises(RegistryError) as gone:
                await client.latest("async-value")
            assert gone.value.not_found
            assert await client.schema_types()
            assert await client.mode() == "READWRITE"

    asyncio.run(scenario())


def test_latest_version_must_read_data_of_the_given_schema(ours: RegistryClient) -> None:
    ours.register("strict-value", Schema('{"type":"record","name":"Client","fields":[]}'))
    ours.set_config("strict-value", {"compatibility": "NONE"})
    ours.register("strict-value", Schema(LONGER))
    latest = {"use.latest.version": True, "auto.register.schemas": False}
    with pytest.raises(SerializationError, match=r"strict: the latest version .* cannot read"):
        AvroSerializer(ours, TEXT, latest).serialize("strict", {"id": "1", "n": 2})
    lenient = AvroSerializer(ours, TEXT, {**latest, "latest.compatibility.strict": False})
    assert lenient.serialize("strict", {"id": "1", "n": 2})


def test_values_that_are_no_messages_are_refused(ours: RegistryClient) -> None:
    with pytest.raises(SerializationError, match="t: dict is not a Protobuf message"):
        ProtobufSerializer(ours).serialize("t", {"id": 1})  # type: ignore[arg-type]
