"""The integration tests of Confluent's Python client and of Karapace, against our registry.

`MOLDAU_CONFLUENT_PYTHON_TESTS` is a checkout of confluentinc/confluent-kafka-python and
`MOLDAU_CONFLUENT_PYTHON` an interpreter with its requirements, `MOLDAU_KARAPACE_TESTS` a checkout of
Aiven-Open/karapace and `MOLDAU_KARAPACE` its command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.registry.instances import running_registry
from tests.interop.registry.karapace import COMMAND
from tests.interop.registry.other_suites import folder_of, python_of, run_suite

pytestmark = [pytest.mark.interop, pytest.mark.timeout(700)]

CONFLUENT = folder_of("MOLDAU_CONFLUENT_PYTHON_TESTS")
KARAPACE = folder_of("MOLDAU_KARAPACE_TESTS")

#: By file of Karapace's tests: the functions that expect other than Confluent's API: words of messages, error
#: codes before 8.2, ids that begin at 1 again, rules of JSON Schema, and Karapace's own answers.
DIFFERENT: dict[str, set[str]] = {
    "test_schema.py": {
        "test_compatibility_endpoint",
        "test_config",
        "test_full_transitive_failure",
        "test_get_schema_with_subjects",
        "test_http_headers",
        "test_invalid_namespace",
        "test_invalid_schema_should_provide_good_error_messages",
        "test_malformed_kafka_message",
        "test_record_schema_compatibility_forward",
        "test_record_schema_subject_compatibility",
        "test_regression_compatibility_should_not_give_internal_server_error_on_invalid_schema_type",
        "test_regression_invalid_schema_type_should_not_give_internal_server_error",
        "test_schema_body_validation",
        "test_schema_hard_delete_and_recreate",
        "test_schema_hard_delete_version",
        "test_schema_json_subject_comparison",
        "test_schema_listing",
        "test_schema_missing_body",
        "test_schema_non_compliant_name_in_existing",
        "test_schema_non_compliant_namespace_in_existing",
        "test_schema_recreate_after_odd_hard_delete",
        "test_schema_same_subject",
        "test_schema_same_subject_unnamed",
        "test_schema_subject_post_invalid",
        "test_schema_versions_multiple_subjects_same_schema",
        "test_transitive_compatibility",
        "test_union_comparing_to_other_types",
    },
    "test_schema_compatibility.py": {
        "test_schema_compatibility",
    },
    "test_schema_avro_references.py": {
        "test_avro_incompatible_name_references",
        "test_avro_references_compatibility",
        "test_basic_avro_references",
    },
    "test_schema_protobuf.py": {
        "test_protobuf_missing_google_import",
        "test_protobuf_schema_references",
        "test_protobuf_schema_verifier",
        "test_references",
    },
    "test_jsonschema.py": {
        "test_schemaregistry_boolean_schemas_are_backward_compatible",
        "test_schemaregistry_object_properties",
        "test_schemaregistry_property_names",
        "test_schemaregistry_schemaregistry_extra_field_with_closed_model_is_incompatible",
        "test_schemaregistry_true_and_false_schemas",
        "test_schemaregistry_true_schema_is_compatible_with_object",
    },
    "test_schema_registry_mode.py": {
        "test_subject_mode",
    },
    "test_dependencies_compatibility_protobuf.py": {
        "test_protobuf_schema_references_rejected_values",
    },
    "test_client_protobuf.py": set(),
}
#: They start a Karapace of their own, or need TLS.
LEFT_OUT = "not registry_cluster1 and not test_registering_normalized_schema and not tls"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.mark.skipif(not COMMAND or not KARAPACE.is_dir(), reason="MOLDAU_KARAPACE_TESTS names no checkout")
@pytest.mark.parametrize("name", DIFFERENT)
def test_karapace(name: str, cluster: Cluster, tmp_path: Path) -> None:
    bootstrap = cluster.bootstrap_servers
    with running_registry(bootstrap) as registry:
        arguments = ["-n", "0", "--timeout", "60", "-p", "at_once", "-k", LEFT_OUT]
        arguments += ["--kafka-bootstrap-servers", bootstrap, "--registry-url", registry.url]
        outcome = run_suite(
            python_of(COMMAND), KARAPACE, [*arguments, f"tests/integration/{name}"], tmp_path, {}
        )
    assert (outcome.failed, outcome.passed > 0) == (DIFFERENT[name], True), outcome.output


@pytest.mark.skipif(not CONFLUENT.is_dir(), reason="MOLDAU_CONFLUENT_PYTHON_TESTS names no checkout")
def test_confluent_python(cluster: Cluster, tmp_path: Path) -> None:
    bootstrap = cluster.bootstrap_servers
    with running_registry(bootstrap) as registry:
        outcome = run_suite(
            os.environ.get("MOLDAU_CONFLUENT_PYTHON", sys.executable),
            CONFLUENT,
            ["tests/integration/schema_registry/_sync"],
            tmp_path,
            {"BROKERS": bootstrap, "SR_URL": registry.url},
        )
    # The first expects the error code before 8.2, the other downloads a Confluent Platform.
    different = {"test_api_register_schema_incompatible", "test_api_get_register_schema_invalid"}
    assert (outcome.failed, outcome.passed) == (different, 49), outcome.output
