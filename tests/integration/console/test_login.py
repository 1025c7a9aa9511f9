"""Signing in with SCRAM users, whose ACLs decide what is shown and allowed."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin import AdminClient
from moldau.client.admin.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from moldau.client.admin.client import checked
from moldau.client.admin.scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from moldau.client.admin.topic_types import NewTopic
from moldau.console.routes import ROUTES
from moldau.local.security.files import USER
from moldau.testing import Cluster
from tests.harness.browser import opened_page, violations, violations_of_dialogs
from tests.harness.rest_proxy import Api, service
from tests.harness.waiting import eventually
from tests.integration.console.test_stories import expect

CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{USER};User:broker",
}
PASSWORD = 'alice"s; password\\'


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    with (
        Cluster(security="SCRAM-SHA-512", config=CONFIG) as cluster,
        AdminClient(cluster.client_config) as admin,
    ):
        admin.create_topics([NewTopic("open", 1, 1), NewTopic("closed", 1, 1)])
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", info, PASSWORD)])
        for operation in (AclOperation.READ, AclOperation.WRITE):
            binding = AclBinding(
                ResourceType.TOPIC,
                "open",
                PatternType.LITERAL,
                "User:alice",
                "*",
                operation,
                PermissionType.ALLOW,
            )
            assert admin.create_acls([binding]) == {binding: None}
        yield cluster


@pytest.fixture(scope="module")
def client_file(secured: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("console") / "client.properties"
    lines = [
        f"{name}={value}\n" for name, value in secured.client_config.items() if name != "sasl.jaas.config"
    ]
    file.write_text("".join(lines))
    return file


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("pipelines")
    (folder / "clean").mkdir()
    (folder / "clean" / "status.json").write_text('{"name": "clean", "state": "running"}')
    return folder


@pytest.fixture(scope="module")
def console(secured: Cluster, client_file: Path, pipelines: Path) -> Iterator[Api]:
    arguments = ["--command-config", str(client_file), "--host", "0.0.0.0", "--pipelines", str(pipelines)]
    arguments += ["--registry", "http://localhost:1", "--connect", "http://localhost:1"]
    with service("console", secured.bootstrap_servers, *arguments) as (port, _):
        yield Api(port, {"Accept": "application/json"})


def signed_in(console: Api, user: str, password: str) -> Api:
    status, body, headers = console.raw(
        "POST",
        "/login",
        json.dumps({"user": user, "password": password}).encode(),
        {"Content-Type": "application/json"},
    )
    assert status == 200, body
    cookie = {name.lower(): value for name, value in headers.items()}["set-cookie"]
    assert "httponly" in cookie.lower() and "samesite=strict" in cookie.lower()
    return Api(
        console.port,
        {**console.headers, "Cookie": cookie.split(";")[0], "X-CSRF-Token": json.loads(body)["token"]},
    )


def test_without_signing_in_nothing_is_shown(console: Api) -> None:
    assert console("GET", "/healthz").body == {"status": "ok"}
    assert console("GET", "/topics").status == 401
    assert console("POST", "/topics", {"name": "x"}).status == 401
    status, _, headers = console.raw("GET", "/topics", headers={"Accept": "text/html"})
    assert (status, {n.lower(): v for n, v in headers.items()}["location"]) == (303, "/login?next=%2Ftopics")
    wrong = console("POST", "/login", {"user": "alice", "password": "wrong"})
    assert wrong.status == 401 and "wrong" not in str(wrong.body)


def test_acls_decide_what_a_user_sees_and_does(console: Api, secured: Cluster) -> None:
    alice = signed_in(console, "alice", PASSWORD)
    assert [each["name"] for each in alice("GET", "/topics").body["topics"]] == ["open"]
    assert alice("POST", "/topics/open/messages", {"value": "from alice"}).status == 201
    (row,) = alice("GET", "/topics/open/messages").body["messages"]
    assert row["value"]["text"] == "from alice"
    assert alice("GET", "/topics/closed").status == 404
    refused = alice("POST", "/topics", {"name": "new"})
    assert refused.status == 403 and "uthoriz" in refused.body["error"]
    assert alice("GET", "/acls").status == 403
    without_token = Api(
        console.port, {name: value for name, value in alice.headers.items() if "CSRF" not in name}
    )
    assert without_token("POST", "/topics/open/messages", {"value": "x"}).status == 403


def test_changes_of_services_need_alter_on_the_cluster(
    console: Api, secured: Cluster, pipelines: Path
) -> None:
    alice = signed_in(console, "alice", PASSWORD)
    changes = [action for action in ROUTES if action.service]
    assert len(changes) == 9
    for each in changes:
        refused = alice(each.method, each.path.replace("{action}", "stop").replace("{pipeline}", "clean"), {})
        assert refused.status == 403 and "ALTER" in refused.body["error"], each.path
    assert alice("GET", "/pipelines/clean").status == 200
    assert not (pipelines / "clean" / "stop").exists()
    with AdminClient(secured.client_config) as admin:
        binding = AclBinding(
            ResourceType.CLUSTER,
            "kafka-cluster",
            PatternType.LITERAL,
            "User:alice",
            "*",
            AclOperation.ALTER,
            PermissionType.ALLOW,
        )
        assert admin.create_acls([binding]) == {binding: None}
        stopped = eventually(
            lambda: (answer := alice("POST", "/pipelines/clean/stop", {})).status == 200 and answer,
            timeout=20,
        )
        assert "asked to stop" in stopped.body["message"] and (pipelines / "clean" / "stop").exists()
        admin.delete_acls([AclBindingFilter(ResourceType.CLUSTER, principal=binding.principal)])


def test_parallel_logins_do_not_test_more_passwords(console: Api) -> None:
    def guess(number: int) -> int:
        return console("POST", "/login", {"user": "mallory", "password": f"guess-{number}"}).status

    with ThreadPoolExecutor(16) as pool:
        found = Counter(pool.map(guess, range(16)))
    assert found[401] <= 4 and found[401] + found[429] == 16
    # Users who know their password are not refused, however many pages they open.
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: signed_in(console, "alice", PASSWORD), range(16)))


def test_scripts_read_lag_with_a_password_or_a_cookie(console: Api, secured: Cluster) -> None:
    assert console.raw("GET", "/burrow/admin/ready")[:2] == (200, b"READY")
    for path in ("/v3/kafka", "/v3/kafka/default/consumer", "/metrics", "/clusters/default/metrics"):
        refused = console("GET", path)
        assert (refused.status, refused.body["error"]) == (401, True)
        assert refused.headers["www-authenticate"].startswith("Basic")
    with AdminClient(secured.client_config) as admin:
        checked(admin.alter_group_offsets("readers", {TopicPartition("open", 0): 0}))
    user, password = USER, secured.librdkafka_config["sasl.password"]
    for name, word, status in ((user, password, 200), ("alice", PASSWORD, 200), ("alice", "wrong", 401)):
        token = base64.b64encode(f"{name}:{word}".encode()).decode()
        script = Api(console.port, {"Authorization": f"Basic {token}"})
        answer = script("GET", "/v3/kafka/default/consumer")
        assert answer.status == status
        if status == 200:
            # A user sees the groups that ACLs let him see.
            assert answer.body["consumers"] == (["readers"] if name == USER else [])
            assert b"moldau_lag_up 1" in script.raw("GET", "/metrics")[1]
        # Only these paths accept a password with every request.
        assert script.raw("GET", "/topics", headers={"Accept": "application/json"})[0] == 401
    assert signed_in(console, user, password)("GET", "/v3/kafka").body["clusters"] == ["default"]


def test_an_administrator_edits_acls(console: Api, secured: Cluster) -> None:
    password = secured.librdkafka_config["sasl.password"]
    admin = signed_in(console, USER, password)
    fields = {
        "principal": "User:bob",
        "permission": "ALLOW",
        "operation": "READ",
        "resource_type": "TOPIC",
        "pattern": "PREFIXED",
        "resource_name": "op",
        "host": "*",
    }
    assert admin("POST", "/acls", fields).status == 201
    found = admin("GET", "/acls?q=bob").body
    assert found["total"] == 1 and found["acls"] == [fields]
    assert admin("POST", "/acls/delete", fields).status == 200
    assert admin("POST", "/acls/delete", fields).status == 404
    assert admin("GET", "/acls?q=bob").body["acls"] == []
    assert {each["name"] for each in admin("GET", "/topics").body["topics"]} == {"open", "closed"}


@pytest.mark.browser
def test_an_administrator_edits_acls_in_the_browser(console: Api, secured: Cluster, browser: Any) -> None:
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        page.goto("/acls")
        page.get_by_label("User").fill(USER)
        page.get_by_label("Password").fill(secured.librdkafka_config["sasl.password"])
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Add ACL").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Principal").fill("carol")
        dialog.get_by_label("Resource name").fill("orders-")
        dialog.get_by_label("Pattern").select_option("PREFIXED")
        dialog.get_by_role("button", name="Add").click()
        expect(page.get_by_role("alert")).to_contain_text("TYPE:NAME")
        dialog.get_by_label("Principal").fill("User:carol")
        dialog.get_by_role("button", name="Add").click()
        row = page.get_by_role("table", name="ACLs").get_by_role("row").filter(has_text="User:carol")
        cells = ["ALLOW", "READ", "TOPIC", "orders-", "PREFIXED", "*"]
        expect(row.get_by_role("cell")).to_contain_text(cells)
        assert (violations(page), violations_of_dialogs(page)) == ([], {})
        row.get_by_role("button", name="Remove").click()
        expect(dialog.get_by_role("heading")).to_have_text("Remove this ACL of User:carol?")
        dialog.get_by_role("button", name="Remove").click()
        expect(page.get_by_role("status")).to_contain_text("removed")
        expect(row).to_have_count(0)


@pytest.mark.browser
def test_a_user_signs_in_and_out(console: Api, browser: Any) -> None:
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        page.goto("/topics")
        assert violations(page) == []
        page.get_by_label("User").fill("alice")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("refuses")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        # The login returns to the page that was requested.
        expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
        expect(page.get_by_role("table", name="Topics").locator("tbody tr")).to_have_count(1)
        page.get_by_role("button", name="Create topic").click()
        page.get_by_role("dialog").get_by_label("Name").fill("mine")
        page.get_by_role("dialog").get_by_role("button", name="Create").click()
        expect(page.get_by_role("alert")).to_contain_text("uthoriz")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        page.goto("/topics")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_other_addresses_are_refused_without_a_login(bootstrap: str) -> None:
    command = [
        sys.executable,
        "-m",
        "moldau",
        "console",
        "--bootstrap-server",
        bootstrap,
        "--host",
        "0.0.0.0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "this machine only" in done.stderr
