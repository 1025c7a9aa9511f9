"""Signing in with OpenID Connect: roles decide what is shown and allowed; forged tokens are refused."""

from __future__ import annotations

import base64
import hmac
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.routing import compile_path

from moldau.base.ids import TopicPartition
from moldau.client.admin import AdminClient
from moldau.client.admin.client import checked
from moldau.client.admin.topic_types import NewTopic
from moldau.console.login.roles import Role
from moldau.console.routes import ROUTES
from tests.harness.browser import opened_page, violations
from tests.harness.rest_proxy import Api, service
from tests.harness.security.certificates import Certificates
from tests.harness.security.oidc_provider import CLIENT_SECRET, OidcProvider
from tests.harness.waiting import eventually
from tests.integration.console.test_stories import expect

USERS = {
    "vera": {"sub": "1", "preferred_username": "vera", "realm_access": {"roles": ["offline", "viewer"]}},
    "edda": {"sub": "2", "preferred_username": "edda", "realm_access": {"roles": ["kafka-editors"]}},
    "anna": {"sub": "3", "preferred_username": "anna", "realm_access": {"roles": ["viewer", "admin"]}},
    "otto": {"sub": "4", "preferred_username": "otto", "realm_access": {"roles": ["accounting"]}},
}
SETTINGS = {"oidc_roles_claim": "realm_access.roles", "oidc_role_editor": "kafka-editors, others"}


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with OidcProvider(USERS) as running:
        yield running


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.jsonl"


@pytest.fixture(scope="module")
def console(bootstrap: str, provider: OidcProvider, audit: Path) -> Iterator[Api]:
    os.environ["CONSOLE_SECRET"] = CLIENT_SECRET
    settings = provider.settings(oidc_client_secret="${env:CONSOLE_SECRET}", **SETTINGS)
    settings["audit.file"] = str(audit)
    chosen = [each for name, value in settings.items() for each in ("--set", f"{name}={value}")]
    # A login allows other addresses.
    try:
        with service("console", bootstrap, "--host", "0.0.0.0", *chosen) as (port, _):
            yield Api(port)
    finally:
        del os.environ["CONSOLE_SECRET"]


def cookies_of(headers: Any) -> dict[str, str]:
    found = {}
    for name, value in headers:
        if name.lower() == "set-cookie":
            pair, _, attributes = value.partition(";")
            cookie, _, text = pair.partition("=")
            found[cookie] = text
            found[f"{cookie} attributes"] = attributes.lower()
    return found


def get(api: Api, path: str, cookie: str = "") -> tuple[int, str, dict[str, str], str]:
    connection, response = api.open("GET", path, headers={"Cookie": cookie, "Accept": "text/html"})
    try:
        body = response.read().decode()
        return (
            response.status,
            body,
            cookies_of(response.getheaders()),
            response.getheader("Location", ""),
        )
    finally:
        connection.close()


def returned(api: Api, provider: OidcProvider, user: str, path: str = "/login/oidc") -> tuple[str, str]:
    """Begin a login, sign in at the provider; return the path of the way back, and the cookie."""
    status, _, cookies, location = get(api, path)
    assert status == 303 and location.startswith(f"{provider.issuer}/authorize?")
    assert "samesite=lax" in cookies["moldau_console_login attributes"]
    back = urlsplit(provider.approve(location, user))
    return f"{back.path}?{back.query}", f"moldau_console_login={cookies['moldau_console_login']}"


def signed_in(api: Api, provider: OidcProvider, user: str) -> Api:
    status, body, cookies, _ = get(api, *returned(api, provider, user))
    assert status == 200, body
    assert "samesite=strict" in cookies["moldau_console attributes"]
    assert "httponly" in cookies["moldau_console attributes"]
    cookie = f"moldau_console={cookies['moldau_console']}"
    page = get(api, "/", cookie)[1]
    token = page.partition('data-csrf="')[2].partition('"')[0]
    assert token
    return Api(api.port, {"Accept": "application/json", "Cookie": cookie, "X-CSRF-Token": token})


def test_roles_decide_what_is_allowed(
    console: Api, provider: OidcProvider, bootstrap: str, topic: str, audit: Path
) -> None:
    vera, edda, anna = (signed_in(console, provider, user) for user in ("vera", "edda", "anna"))
    assert vera("POST", "/topics", {"name": topic}).status == 403
    assert edda("POST", "/topics", {"name": topic}).status == 201
    assert edda("POST", f"/topics/{topic}/messages", {"key": "k", "value": "secret text"}).status == 201
    (row,) = vera("GET", f"/topics/{topic}/messages").body["messages"]
    assert row["value"]["text"] == "secret text"
    refused = vera("POST", f"/topics/{topic}/messages", {"value": "x"})
    assert refused.status == 403
    assert refused.body["error"] == "This needs the role editor; you have the role viewer."
    for path in (f"/topics/{topic}/delete", "/acls", "/users", "/quotas", "/brokers/1"):
        refused = edda("POST", path, {"name": topic})
        assert (refused.status, refused.body["error"].split(";")[0]) == (403, "This needs the role admin")
    user = {"user": f"u-{topic}", "password": "hidden pass", "mechanism": "SCRAM-SHA-256"}
    assert anna("POST", "/users", user).status == 201
    assert anna("POST", f"/users/{user['user']}/delete", {"name": user["user"]}).status == 200
    assert anna("POST", f"/topics/{topic}/delete", {"name": topic}).status == 200
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    done = [
        (each["user"], each["role"], each["action"], each["values"])
        for each in lines
        if topic in json.dumps(each) and each["result"] == "done"
    ]
    assert done == [
        ("edda", "editor", "POST /topics", {"name": topic}),
        ("edda", "editor", f"POST /topics/{topic}/messages", {"topic": topic}),
        ("anna", "admin", "POST /users", {"user": user["user"], "mechanism": "SCRAM-SHA-256"}),
        ("anna", "admin", f"POST /users/{user['user']}/delete", {"user": user["user"]}),
        ("anna", "admin", f"POST /topics/{topic}/delete", {"topic": topic}),
    ]
    details = [each.get("detail") for each in lines if each["action"] == f"POST /topics/{topic}/messages"]
    assert details == ["The record is written to partition 0 at offset 0.", None]
    assert ("vera", "GET /login/callback", "done") in [
        (each["user"], each["action"], each["result"]) for each in lines
    ]
    assert "hidden pass" not in audit.read_text() and "secret text" not in audit.read_text()


def offered(page: str) -> set[str]:
    """Return the paths to which the forms of a page send changes."""
    found = set(re.findall(r'(?:formaction|action|data-sql|data-import|data-preview)="(/[^"?]*)', page))
    return found - {"/logout"}


def needed(path: str) -> Role:
    posts = (each for each in ROUTES if each.method == "POST")
    return next(each.role for each in posts if compile_path(each.path)[0].match(path))


def test_pages_show_what_the_role_may_do(
    console: Api, provider: OidcProvider, bootstrap: str, topic: str
) -> None:
    with AdminClient(bootstrap) as admin:
        assert admin.create_topics([NewTopic(topic, 1, 1)]) == {topic: None}
        checked(admin.alter_group_offsets(topic, {TopicPartition(topic, 0): 0}))
    assert (
        signed_in(console, provider, "edda")("POST", f"/topics/{topic}/messages", {"value": "x"}).status
        == 201
    )
    paths = ["/", "/topics", "/groups", "/brokers", "/brokers/1", "/acls", "/users", "/quotas", "/sql"]
    paths += [f"/topics/{topic}/{tab}" for tab in ("messages", "messages/0/0", "partitions", "configuration")]
    paths += [f"/groups/{topic}", "/schemas", "/connectors", "/pipelines"]
    shown = {}
    for user, role in (("vera", Role.VIEWER), ("edda", Role.EDITOR), ("anna", Role.ADMIN)):
        cookie = signed_in(console, provider, user).headers["Cookie"]
        pages = "".join(get(console, path, cookie)[1] for path in paths)
        actions = {path for path in offered(pages) if path != f"/topics/{topic}/messages"}
        assert {path for path in actions if needed(path) > role} == set()
        buttons = ("Create topic", "Produce", "Reset offsets", "Delete group", "Delete topic", "Add user")
        shown[user] = [each for each in buttons if f">{each}</button>" in pages]
    assert shown == {
        "vera": [],
        "edda": ["Create topic", "Produce", "Reset offsets"],
        "anna": ["Create topic", "Produce", "Reset offsets", "Delete group", "Delete topic", "Add user"],
    }
    # That of the administrator has most of the table.
    assert len(actions) >= 9, actions


def test_a_user_without_a_role_has_no_access(console: Api, provider: OidcProvider) -> None:
    status, body, cookies, _ = get(console, *returned(console, provider, "otto"))
    assert status == 403 and "otto has no access" in body and "realm_access.roles" in body
    assert "moldau_console" not in cookies


def test_the_login_returns_to_the_page_and_nowhere_else(console: Api, provider: OidcProvider) -> None:
    status, _, _, location = get(console, "/topics?q=a%20b")
    assert (status, location) == (303, "/login?next=%2Ftopics%3Fq%3Da%2520b")
    page = get(console, location)[1]
    assert 'href="/login/oidc?next=%2Ftopics%3Fq%3Da%2520b"' in page
    back = returned(console, provider, "vera", "/login/oidc?next=%2Ftopics%3Fq%3Da%2520b")
    assert 'content="0; url=/topics?q=a%20b"' in get(console, *back)[1]
    for elsewhere in (
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "/login",
        "javascript:x",
    ):
        back = returned(console, provider, "vera", f"/login/oidc?next={elsewhere}")
        assert 'content="0; url=/"' in get(console, *back)[1]


def test_answers_of_another_login_are_refused(console: Api, provider: OidcProvider) -> None:
    path, cookie = returned(console, provider, "anna")
    _, other = returned(console, provider, "anna")
    body, _, signature = cookie.partition("=")[2].partition(".")
    forged = base64.urlsafe_b64encode(base64.urlsafe_b64decode(body).replace(b'"/"', b'"/x"')).decode()
    for wrong in ("", other, f"moldau_console_login={forged}.{signature}"):
        status, page, cookies, _ = get(console, path, wrong)
        assert status == 403 and "was not begun here" in page and "moldau_console" not in cookies
    assert get(console, path, cookie)[0] == 200
    # The provider accepts a code once.
    status, page, cookies, _ = get(console, path, cookie)
    assert status == 403 and "invalid_grant" in page and "moldau_console" not in cookies
    refused = get(console, *returned(console, provider, "nobody"))
    assert refused[0] == 403 and "access_denied" in refused[1] and "<b>" not in refused[1]


def unsigned(provider: OidcProvider, claims: dict[str, Any]) -> str:
    _, payload, _ = provider.keys.token(**claims).split(".")
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    return f"{header}.{payload}."


def by_public_key(provider: OidcProvider, claims: dict[str, Any]) -> str:
    """HMAC with the public key as the secret."""
    (key,) = provider.keys.keys.values()
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"key-1"}').rstrip(b"=").decode()
    signed = f"{header}.{provider.keys.token(**claims).split('.')[1]}"
    digest = hmac.digest(key.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def by_another_algorithm(provider: OidcProvider, claims: dict[str, Any]) -> str:
    (key,) = provider.keys.keys.values()
    header = {"alg": "PS256", "kid": "key-1"}
    return jwt.encode(header, {**claims, "iat": 1, "exp": 1 << 40}, key, algorithms=["PS256"])


def by_another_key(provider: OidcProvider, claims: dict[str, Any]) -> str:
    return jwt.encode(
        {"alg": "RS256", "kid": "key-1"}, {**claims, "iat": 1, "exp": 1 << 40}, RSAKey.generate_key(2048)
    )


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (lambda provider, claims: provider.keys.token(**{**claims, "nonce": "other"}), "nonce"),
        (lambda provider, claims: provider.keys.token(**{**claims, "nonce": None}), "nonce"),
        (lambda provider, claims: provider.keys.token(**{**claims, "aud": "other"}), "aud"),
        (lambda provider, claims: provider.keys.token(**{**claims, "azp": "other"}), "azp"),
        (lambda provider, claims: provider.keys.token(**{**claims, "iss": "http://other"}), "issuer"),
        (lambda provider, claims: provider.keys.token(**{**claims, "iat": 1000, "exp": 2000}), "expired"),
        (by_another_algorithm, "algorithm"),
        (unsigned, "algorithm"),
        (by_public_key, "algorithm"),
        (by_another_key, "signature"),
    ],
)
def test_forged_tokens_are_refused(
    console: Api, provider: OidcProvider, tamper: Callable[..., str], reason: str
) -> None:
    provider.tamper = lambda claims: tamper(provider, claims)
    try:
        status, body, cookies, _ = get(console, *returned(console, provider, "anna"))
    finally:
        provider.tamper = None
    assert status == 403 and reason in body
    assert "moldau_console" not in cookies


def test_https_a_secret_in_a_file_claims_of_userinfo_and_new_keys(bootstrap: str, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "tls")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server)
    secret, settings = tmp_path / "secret", tmp_path / "console.properties"
    secret.write_text(f"{CLIENT_SECRET}\n")
    with OidcProvider(USERS, tls) as provider:
        provider.only_userinfo = frozenset({"realm_access"})
        provider.document = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        chosen = provider.settings(oidc_client_secret_file=str(secret), **SETTINGS)
        chosen |= {"oidc.ssl.truststore.type": "PEM", "oidc.ssl.truststore.location": str(certificates.ca)}
        settings.write_text("".join(f"{name}={value}\n" for name, value in chosen.items()))
        with service("console", bootstrap, "--config", str(settings)) as (port, _):
            assert Api(port)("GET", "/healthz").body == {"status": "ok"}
            assert signed_in(Api(port), provider, "vera")("POST", "/topics", {"name": "x"}).status == 403
            provider.keys.rotate("key-2")
            assert signed_in(Api(port), provider, "anna")("GET", "/topics").status == 200


def test_scripts_send_access_tokens(console: Api, bootstrap: str, provider: OidcProvider, topic: str) -> None:
    chosen = provider.settings(oidc_expected_audience="scripts, others", **SETTINGS)
    arguments = [each for name, value in chosen.items() for each in ("--set", f"{name}={value}")]

    def script(port: int, *, roles: str, **claims: Any) -> Api:
        usual = {"iss": provider.issuer, "aud": ["scripts"], "realm_access": {"roles": [roles]}}
        token = provider.keys.token("robot", **{**usual, **claims})
        return Api(port, {"Accept": "application/json", "Authorization": f"Bearer {token}"})

    with service("console", bootstrap, *arguments) as (port, _):
        editor = script(port, roles="others")
        assert editor("POST", "/topics", {"name": topic}).status == 201
        assert editor("POST", f"/topics/{topic}/delete", {"name": topic}).status == 403
        assert editor("GET", "/v3/kafka").body["clusters"] == ["default"]
        assert script(port, roles="admin")("POST", f"/topics/{topic}/delete", {"name": topic}).status == 200
        assert script(port, roles="nothing")("GET", "/topics").status == 403
        now = int(time.time())
        for wrong in ({"aud": "moldau console"}, {"aud": None}, {"iss": "x"}, {"iat": 1, "exp": now - 100}):
            refused = script(port, roles="admin", **wrong)("GET", "/topics")
            assert refused.status == 401 and "The token is refused" in refused.body["error"]
        # Half a minute after its end a token is refused: clocks may differ by that.
        brief = script(port, roles="admin", iat=now - 100, exp=int(time.time()) - 25)
        assert brief("GET", "/topics").status == 200
        eventually(lambda: brief("GET", "/topics").status == 401, timeout=60)
    # Without an audience, no token is accepted.
    assert script(console.port, roles="admin")("GET", "/topics").status == 401


def test_a_provider_that_does_not_answer_is_named(bootstrap: str) -> None:
    with OidcProvider(USERS) as gone:
        chosen = gone.settings()
    arguments = [each for name, value in chosen.items() for each in ("--set", f"{name}={value}")]
    with service("console", bootstrap, *arguments) as (port, _):
        status, body, _, _ = get(Api(port), "/login/oidc")
        assert status == 503 and "identity provider cannot be used" in body
        assert Api(port)("GET", "/healthz").status == 503


@pytest.mark.browser
def test_a_person_signs_in_at_the_provider(console: Api, provider: OidcProvider, browser: Any) -> None:
    with opened_page(browser, f"http://127.0.0.1:{console.port}") as page:
        page.goto("/topics?q=nothing")
        assert violations(page) == []
        page.get_by_role("link", name="Sign in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Provider")
        page.get_by_role("link", name="Continue as otto").click()
        expect(page.get_by_role("alert")).to_contain_text("otto has no access")
        assert violations(page) == []
        page.get_by_role("link", name="Sign in as another user").click()
        assert provider.authorizations[-1]["prompt"] == "login"
        page.get_by_role("link", name="Continue as vera").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        expect(page.get_by_role("navigation", name="Console")).to_contain_text("Viewer")
        page.get_by_role("link", name="Topics").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
        expect(page.get_by_role("button", name="Create topic")).to_have_count(0)
        # A link of another site, with which browsers do not send the cookie.
        page.goto(f"{provider.issuer}/authorize")
        page.evaluate(
            "url => { document.body.innerHTML = '<a>Shared</a>'; document.querySelector('a').href = url }",
            f"http://127.0.0.1:{console.port}/topics?q=shared",
        )
        page.get_by_role("link", name="Shared").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
        assert page.url.endswith("/topics?q=shared")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("status")).to_have_text("You have signed out of the console.")
        page.get_by_role("link", name="End the session at the identity provider").click()
        page.get_by_role("link", name="Return").click()
        expect(page.get_by_role("link", name="Sign in")).to_be_visible()
        page.goto("/topics?q=nothing")
        page.get_by_role("link", name="Sign in").click()
        page.get_by_role("link", name="Continue as edda").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
        assert page.url.endswith("/topics?q=nothing")
        expect(page.get_by_role("button", name="Create topic")).to_be_visible()
