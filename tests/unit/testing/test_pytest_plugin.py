"""The pytest plugin: there wherever Moldau is installed, of no cost to runs that do not use it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.harness.pytest_run import run_pytest

TESTS = """
    import os
    import pytest

    seen = set()

    def test_a_node_of_its_own(kafka_cluster):
        assert kafka_cluster.running
        seen.add(kafka_cluster.port)

    def test_another_node(kafka_cluster):
        kafka_cluster.kill()
        kafka_cluster.restart()
        assert kafka_cluster.port not in seen

    @pytest.mark.parametrize("turn", [1, 2])
    def test_one_for_all(kafka_cluster_session, turn):
        seen.add(kafka_cluster_session.pid)
        assert kafka_cluster_session.pid in seen

    class TestWithSettings:
        @pytest.fixture
        def kafka_cluster_config(self):
            return {"num.partitions": 7}

        def test_settings(self, kafka_cluster):
            from confluent_kafka.admin import AdminClient, ConfigResource
            admin = AdminClient({"bootstrap.servers": kafka_cluster.bootstrap_servers})
            [described] = admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")]).values()
            assert described.result(10)["num.partitions"].value == "7"

    class TestWithSeveralNodes:
        @pytest.fixture
        def kafka_cluster_brokers(self):
            return 2

        def test_nodes(self, kafka_cluster):
            assert [node.running for node in kafka_cluster.nodes] == [True, True]

    class TestWithSecurity:
        @pytest.fixture
        def kafka_cluster_security(self):
            return "mTLS"

        def test_security(self, kafka_cluster):
            from confluent_kafka.admin import AdminClient
            admin = AdminClient(kafka_cluster.librdkafka_config)
            assert admin.list_topics(timeout=10).brokers
"""


def test_fixtures_start_clusters(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(textwrap.dedent(TESTS))
    done = run_pytest(tmp_path, "-q", "-W", "error::ResourceWarning")
    assert "7 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_xdist_workers_have_separate_nodes(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_it.py").write_text(textwrap.dedent(TESTS))
    done = run_pytest(tmp_path, "-q", "-n", "2")
    assert "7 passed" in done.stdout, done.stdout + done.stderr


def test_unused_plugin_imports_no_broker_and_starts_no_process(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import sys

            def test_nothing_of_ours():
                ours = {name for name in sys.modules if name.startswith("moldau")}
                assert ours == {"moldau", "moldau.testing", "moldau.testing.pytest_plugin"}
            """
        )
    )
    done = run_pytest(tmp_path, "-q")
    assert done.returncode == 0, done.stdout


def test_package_exports_its_public_names() -> None:
    import moldau.testing

    assert moldau.testing.Cluster.__name__ == "Cluster"
    with pytest.raises(AttributeError, match="Clustre"):
        moldau.testing.Clustre  # noqa: B018
