"""A secured node of Moldau and one of Apache Kafka with the same properties apart from ports and folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.apache.shared_folder import APACHE, MOLDAU
from tests.harness.security.keytool import Stores, stores
from tests.harness.security.secured_node import SecuredNode
from tests.interop import jars


@pytest.fixture(scope="session")
def key_stores() -> Stores:
    if shutil.which("keytool") is None:
        pytest.skip("keytool is not installed (apt install default-jdk-headless)")
    return stores(jars.FOLDER / "stores")


@pytest.fixture(scope="session")
def secured_apache(
    tmp_path_factory: pytest.TempPathFactory, libs: Path, key_stores: Stores
) -> Iterator[SecuredNode]:
    with SecuredNode(tmp_path_factory.mktemp("apache"), libs, key_stores) as node:
        yield node.start(APACHE)


@pytest.fixture(scope="session")
def secured_moldau(
    tmp_path_factory: pytest.TempPathFactory, libs: Path, key_stores: Stores
) -> Iterator[SecuredNode]:
    software = APACHE if os.environ.get("MOLDAU_TEST_BROKER") == "apache" else MOLDAU
    with SecuredNode(tmp_path_factory.mktemp("moldau"), libs, key_stores) as node:
        yield node.start(software)


@pytest.fixture(params=[APACHE, MOLDAU])
def secured(request: pytest.FixtureRequest) -> SecuredNode:
    """Each of both nodes, for tests that both must pass."""
    node: SecuredNode = request.getfixturevalue(f"secured_{request.param}")
    return node
