"""Several clusters in one console with https: logins, the back-off, sessions that end, the audit log."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.client.admin import AdminClient
from moldau.client.admin.scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from moldau.client.admin.topic_types import NewTopic
from moldau.local.ports import ReservedPorts
from moldau.testing import Cluster
from tests.harness.browser import opened_page
from tests.harness.rest_proxy import Api, service
from tests.harness.security.certificates import Certificates
from tests.harness.waiting import eventually
from tests.integration.console.test_stories import expect

USERS = {"first": ("alice", "of the first"), "second": ("bob", "of the second")}
TIMEOUT_MS = 8_000


def properties(cluster: Cluster) -> dict[str, str]:
    return {name: each for name, each in cluster.client_config.items() if name != "sasl.jaas.config"}


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, Cluster]]:
    with Cluster(security="SCRAM-SHA-512") as first, Cluster(security="SCRAM-SHA-256") as second:
        found = {"first": first, "second": second}
        for name, cluster in found.items():
            user, password = USERS[name]
            mechanism = getattr(ScramMechanism, cluster.client_config["sasl.mechanism"].replace("-", "_"))
            with AdminClient(cluster.client_config) as admin:
                admin.create_topics([NewTopic(f"topic-of-{name}", 1, 1)])
                info = ScramCredentialInfo(mechanism, 4096)
                admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, password)])
        yield found


class Console(NamedTuple):
    port: int
    tls: ssl.SSLContext
    audit: Path

    def __call__(
        self, method: str, path: str, fields: Any = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        connection = HTTPSConnection("localhost", self.port, timeout=60, context=self.tls)
        given = {"Accept": "application/json", "Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, None if fields is None else json.dumps(fields), given)
            response = connection.getresponse()
            body = response.read()
            received = {name.lower(): value for name, value in response.getheaders()}
            json_body = received.get("content-type", "").startswith("application/json")
            return response.status, json.loads(body) if json_body else body.decode(), received
        finally:
            connection.close()

    def sign_in(self, cluster: str, cookie: str = "") -> dict[str, str]:
        user, password = USERS[cluster]
        fields = {"user": user, "password": password, "cluster": cluster}
        status, body, headers = self("POST", "/login", fields, Cookie=cookie)
        assert status == 200, body
        assert "; secure" in headers["set-cookie"].lower()
        return {"Cookie": headers["set-cookie"].split(";")[0], "X_CSRF_Token": body["token"]}

    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@pytest.fixture(scope="module")
def console(clusters: dict[str, Cluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("console")
    certificates = Certificates(folder / "tls")
    first, second = (properties(clusters[name]) for name in USERS)
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in first.items()))
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    ports.release()
    settings = {
        "listeners": f"https://0.0.0.0:{port}",
        **{name: value for name, value in certificates.server_properties().items() if "client" not in name},
        "cluster.name": "first",
        "cluster.second.bootstrap.servers": clusters["second"].bootstrap_servers,
        **{f"cluster.second.{name}": value for name, value in second.items()},
        "session.timeout.ms": str(TIMEOUT_MS),
        "audit.file": str(folder / "audit.jsonl"),
    }
    chosen = [each for name, value in settings.items() for each in ("--set", f"{name}={value}")]
    with service("console", clusters["first"].bootstrap_servers, "--command-config", str(file), *chosen):
        yield Console(port, certificates.python(), folder / "audit.jsonl")


def test_each_cluster_has_a_login_of_its_own(console: Console) -> None:
    assert console("GET", "/healthz")[:2] == (200, {"status": "ok"})
    alice = console.sign_in("first")
    assert [each["name"] for each in console("GET", "/topics", **alice)[1]["topics"]] == ["topic-of-first"]
    # The second cluster has no user alice.
    status, body, _ = console("GET", "/clusters/second/topics", **alice)
    assert status == 401 and "cluster second" in body["error"]
    status, _, headers = console("GET", "/clusters/second/topics", Accept="text/html", Cookie=alice["Cookie"])
    assert (status, headers["location"]) == (303, "/login?cluster=second&next=%2Fclusters%2Fsecond%2Ftopics")
    both = console.sign_in("second", alice["Cookie"])
    assert both == alice
    found = console("GET", "/clusters/second/topics", **both)[1]["topics"]
    assert [each["name"] for each in found] == ["topic-of-second"]
    assert console("GET", "/topics", **both)[0] == 200
    refused = console("POST", "/clusters/second/topics", {"name": ""}, **both)
    assert refused[0] == 400
    assert console("POST", "/topics", {"name": ""}, **both)[0] == 400
    lines = [each for each in console.audited() if each["action"].endswith("/topics") and each["user"]]
    assert [(each["cluster"], each["user"]) for each in lines] == [("second", "bob"), ("first", "alice")]


def test_another_user_takes_nothing_over_from_a_session(
    console: Console, clusters: dict[str, Cluster]
) -> None:
    alice = console.sign_in("first")
    user, password = (
        clusters["first"].librdkafka_config[f"sasl.{each}"] for each in ("username", "password")
    )
    fields = {"user": user, "password": password}
    status, body, headers = console("POST", "/login", fields, Cookie=alice["Cookie"])
    assert (status, body["user"]) == (200, user)
    assert headers["set-cookie"].split(";")[0] != alice["Cookie"]
    assert console("GET", "/topics", **alice)[0] == 401


def test_health_says_whether_users_can_sign_in() -> None:
    scram = [
        "--set",
        "client.security.protocol=SASL_PLAINTEXT",
        "--set",
        "client.sasl.mechanism=SCRAM-SHA-256",
    ]
    with service("console", "localhost:1", *scram) as (port, _):
        answer = Api(port)("GET", "/healthz")
        assert (answer.status, answer.body) == (503, {"status": "unreachable"})


def test_failed_logins_are_delayed_and_audited(console: Console) -> None:
    statuses = []
    for _ in range(6):
        fields = {"user": "mallory", "password": "the guess", "cluster": "first"}
        status, body, _ = console("POST", "/login", fields)
        statuses.append(status)
    assert statuses[:4] == [401] * 4 and statuses[-1] == 429
    assert "try again in" in body["error"]
    # Other users are not concerned.
    alice = console.sign_in("first")
    assert console("GET", "/topics")[0] == 401
    assert console("POST", "/logout", {"token": alice["X_CSRF_Token"]}, **alice)[0] == 303
    assert console("GET", "/topics", **alice)[0] == 401
    basic = f"Basic {base64.b64encode(b'carol:wrong').decode()}"
    assert console("GET", "/metrics", Authorization=basic)[0] == 401
    lines = [(each["user"], each["action"], each["result"]) for each in console.audited()]
    assert ("carol", "GET /metrics", "refused: The cluster refuses this user and password.") in lines
    assert ("mallory", "POST /login", "refused: The cluster refuses this user and password.") in lines
    assert ("alice", "POST /login", "done") in lines and ("alice", "POST /logout", "done") in lines
    # Of these, the first of a minute are logged.
    assert any(each[0] is None and each[2] == "refused: not signed in" for each in lines)
    text = console.audit.read_text()
    assert "the guess" not in text and USERS["first"][1] not in text


def test_pages_that_update_themselves_do_not_prolong_a_session(console: Console) -> None:
    alice = console.sign_in("first")
    headers = {"Accept": "text/html", "HX_Request": "true", "HX_Current_URL": "https://localhost/topics?q=x"}

    def ended() -> dict[str, str] | None:
        status, _, received = console("GET", "/topics?q=x", Cookie=alice["Cookie"], **headers)
        return received if status == 401 else None

    streaming = HTTPSConnection("localhost", console.port, timeout=30, context=console.tls)
    streaming.request("GET", "/events", headers={"Cookie": alice["Cookie"]})
    stream = streaming.getresponse()
    assert stream.status == 200
    begin = time.monotonic()
    received = eventually(ended, timeout=30)
    assert time.monotonic() - begin > TIMEOUT_MS / 1000 - 2
    assert received["hx-redirect"] == "/login?next=%2Ftopics%3Fq%3Dx"
    assert console("GET", "/topics", **alice)[0] == 401
    # A stream ends with its session.
    assert b"event: snapshot" in stream.read()
    streaming.close()


@pytest.mark.browser
def test_a_person_uses_two_clusters_until_the_session_ends(console: Console, browser: Any) -> None:
    url = f"https://127.0.0.1:{console.port}"
    with opened_page(browser, url, ignore_https_errors=True) as page:

        def sign_in(cluster: str) -> None:
            user, password = USERS[cluster]
            page.get_by_label("User").fill(user)
            page.get_by_label("Password").fill(password)
            page.get_by_role("button", name="Sign in").click()

        page.goto("/topics?q=of")
        sign_in("first")
        rows = page.get_by_role("table", name="Topics").locator("tbody tr")
        expect(rows).to_contain_text(["topic-of-first"])
        assert page.url == f"{url}/topics?q=of"
        page.get_by_label("Cluster").select_option(label="second")
        expect(page.get_by_text("SCRAM user of the cluster second")).to_be_visible()
        sign_in("second")
        # The section is the same in the other cluster.
        expect(rows).to_contain_text(["topic-of-second"])
        assert page.url == f"{url}/clusters/second/topics"
        expect(page.get_by_role("navigation", name="Console")).to_contain_text("bob")
        page.get_by_label("Cluster").select_option(label="first")
        expect(rows).to_contain_text(["topic-of-first"])
        expect(page.get_by_role("navigation", name="Console")).to_contain_text("alice")
        # The table follows the cluster by itself, until the session ends.
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        sign_in("first")
        expect(rows).to_contain_text(["topic-of-first"])
        assert page.url == f"{url}/topics"
