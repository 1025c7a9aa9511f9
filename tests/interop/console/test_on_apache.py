"""The web console over Apache Kafka: its own tests, three nodes one of which is killed, SCRAM and ACLs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client.admin import AdminClient
from moldau.client.admin.acls import (
    AclBinding,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from moldau.client.admin.topic_types import NewTopic
from tests.harness.apache.nodes import ApacheNodes
from tests.harness.apache.shared_folder import APACHE
from tests.harness.browser import launched_browser, opened_page
from tests.harness.rest_proxy import Api, service
from tests.harness.security.secured_node import ADMIN, USERS, SecuredNode
from tests.harness.waiting import eventually
from tests.harness.watched_kill import active_controller, opened_pages, watch_a_kill, watch_the_return

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CONSOLE = Path(__file__).parents[2] / "integration" / "console"
#: The console shows what the cluster knows: a killed broker is online until its session has timed out.
SESSIONS = {"broker.session.timeout.ms": 4000, "broker.heartbeat.interval.ms": 1000}


@pytest.mark.parametrize(
    "module", ["test_stories.py", "test_record_stories.py", "test_http.py", "test_services.py"]
)
def test_the_console_shows_and_changes_apache_kafka(module: str, libs: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CONSOLE / module)],
        env={**os.environ, "MOLDAU_TEST_BROKER": "apache", "KAFKA_LIBS": str(libs)},
        cwd=CONSOLE.parents[2],
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched_browser() as running:
        yield running


@pytest.mark.browser
def test_a_killed_node_of_apache_is_seen_without_reloading(browser: Any, libs: Path) -> None:
    with (
        ApacheNodes(3, libs=libs, config=SESSIONS) as cluster,
        service("console", cluster.bootstrap_servers) as (port, _),
    ):
        console = Api(port, {"Accept": "application/json"})
        with opened_pages(browser, console, cluster.bootstrap_servers, "watched") as pages:
            victim = active_controller(console)
            others = [each.bootstrap_servers for id, each in cluster.nodes.items() if id != victim]
            with AdminClient(",".join(others)) as admin:

                def fenced() -> bool:
                    return victim not in [each.id for each in admin.describe_cluster().nodes]

                watch_a_kill(pages, victim, lambda: cluster.kill(victim), fenced)
            cluster.restart(victim)
            watch_the_return(pages, victim)


@pytest.mark.browser
def test_users_of_apache_sign_in_with_scram_and_see_what_acls_allow(
    browser: Any, libs: Path, tmp_path: Path
) -> None:
    with SecuredNode(tmp_path / "node", libs, None) as node:
        node.start(APACHE)
        address = node.address("SASL_PLAINTEXT")
        client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
        login = {"sasl.username": ADMIN, "sasl.password": USERS[ADMIN]}
        with AdminClient({"bootstrap.servers": address, **client, **login}) as admin:
            topics = [NewTopic("open", 1, 1), NewTopic("closed", 1, 1)]
            eventually(lambda: not any(admin.create_topics(topics).values()), timeout=30)
            binding = AclBinding(
                ResourceType.TOPIC,
                "open",
                PatternType.LITERAL,
                "User:alice",
                "*",
                AclOperation.READ,
                PermissionType.ALLOW,
            )
            assert admin.create_acls([binding]) == {binding: None}
        file = tmp_path / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in client.items()))
        arguments = ["--command-config", str(file), "--host", "0.0.0.0"]
        with (
            service("console", address, *arguments) as (port, _),
            opened_page(browser, f"http://127.0.0.1:{port}") as page,
        ):
            sign_in(page, "alice", "wrong")
            page.get_by_role("alert").get_by_text("refuses").wait_for()
            sign_in(page, "alice", USERS["alice"])
            names = page.get_by_role("table", name="Topics").get_by_role("rowheader")
            names.first.wait_for()
            assert names.all_inner_texts() == ["open"]
            page.goto("/topics/open/messages")
            page.get_by_role("button", name="Produce").click()
            page.get_by_role("dialog").get_by_role("button", name="Send").click()
            page.get_by_role("alert").get_by_text("uthoriz").wait_for()
            page.keyboard.press("Escape")
            page.get_by_role("button", name="Sign out").click()
            sign_in(page, ADMIN, USERS[ADMIN])
            names.first.wait_for()
            assert names.all_inner_texts() == ["closed", "open"]


def sign_in(page: Any, user: str, password: str) -> None:
    page.goto("/login?next=/topics")
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
