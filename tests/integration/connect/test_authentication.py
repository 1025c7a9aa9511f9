"""Workers whose REST API needs credentials, and the requests between them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.harness.waiting import eventually
from tests.integration.connect.conftest import StartWorker
from tests.integration.connect.test_distributed import datagen, owners

HEADERS = {"Authorization": f"Basic {base64.b64encode(b'ann:secret').decode()}"}


def test_workers_with_authentication_share_the_work(
    group: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    (tmp_path / "users.properties").write_text("ann=secret\n")
    users = {
        "config_providers": "file",
        "config_providers_file_class": "FileConfigProvider",
        "authentication_method": "BASIC",
        "authentication_user_ann": f"${{file:{tmp_path / 'users.properties'}:ann}}",
    }
    first, second = start_worker(**users), start_worker(**users)
    assert first.api("GET", "/connectors").status == 401
    assert first.api("PUT", "/connectors/gen/config", datagen(f"{group}-gen")).status == 401
    for worker in (first, second):
        worker.api.headers.update(HEADERS)
    # Some connectors are on the worker that does not lead; the leader stores their tasks.
    names = [f"gen-{number}" for number in range(4)]
    for name in names:
        first.create(name, datagen(f"{group}-gen"))
    for name in names:
        first.wait_for(name)
    connectors = [second.api("GET", f"/connectors/{each}/status").body["connector"] for each in names]
    assert {each["worker_id"] for each in connectors} == {first.id, second.id}
    eventually(lambda: {owner for name in names for owner in owners(second, name)} == {first.id, second.id})


def test_requests_between_workers_need_a_signature_instead_of_credentials(
    group: str, start_worker: StartWorker
) -> None:
    worker = start_worker(authentication_method="BASIC", authentication_user_ann="secret")
    for method, path in (("POST", "/connectors/gen/tasks"), ("PUT", "/connectors/gen/fence")):
        status, body, _ = worker.api.raw(method, path, b"[]")
        assert (status, json.loads(body)["message"]) == (400, "Internal request missing required signature")
    assert worker.api("GET", "/connectors/gen/tasks").status == 401
