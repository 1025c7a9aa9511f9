"""The catalog of SQL in its topic: what strangers write there disturbs nobody."""

from __future__ import annotations

import logging

import pytest

from moldau.client import AdminClient, Producer
from moldau.pipelines.sql.catalog.catalog import PersistentQuery
from moldau.pipelines.sql.catalog.topic import TOPIC, CatalogTopic
from moldau.testing import Cluster


def test_invalid_records_are_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with Cluster() as node, AdminClient(node.bootstrap_servers) as admin:
        config = {"bootstrap.servers": node.bootstrap_servers}
        catalog = CatalogTopic(config, admin)
        with Producer(config) as producer:
            producer.send(TOPIC, b"not JSON", b"source:A")
            producer.send(TOPIC, b"[]", b"query:B")
            producer.send(TOPIC, b'{"version": 1, "odd": 2}', b"query:C")
        with caplog.at_level(logging.WARNING):
            catalog.refresh()
        assert caplog.text.count("Ignoring an invalid record of the catalog") == 3
        query = PersistentQuery("Q1", "INSERT INTO a SELECT * FROM b;", "a", ("b",))
        catalog.put(query)
        again = CatalogTopic(config, admin)
        again.refresh()
        assert again.catalog.query(query.id) == query
        again.close()
        catalog.close()
