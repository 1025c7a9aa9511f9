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

WORDS = "other words in a message than Confluent's"
CODE = "another error code or media type than Confluent's"
IDS = "ids of the registry begin at 1 again in each test"
ORDER = "subjects are listed in the order of their registration, not by name"
FIELDS = "responses without the fields that Confluent's has since 7.5 and 8.0, or with others"
AVRO_NAMES = "names that Confluent's registry refuses are accepted if the topic already has them"
TEXT = "schemas are stored or returned in another form than Confluent's canonical text"
RULES = "rules of JSON Schema's compatibility that differ from Confluent's"
NEW_ID = "a schema that was deleted for good gets its old id again"
MODE = "the mode of a subject without one is that of the top level, without defaultToGlobal"
PROTOBUF = "types of well-known files must be imported, which Confluent's registry does not require"

#: By file of Karapace's tests: the functions that expect other than Confluent's API, and why they fail.
DIFFERENT: dict[str, dict[str, str]] = {
    "test_schema.py": {
        "test_compatibility_endpoint": WORDS,
        "test_config": FIELDS,
        "test_full_transitive_failure": AVRO_NAMES,
        "test_get_schema_with_subjects": FIELDS,
        "test_http_headers": CODE,
        "test_invalid_namespace": WORDS,
        "test_invalid_schema_should_provide_good_error_messages": WORDS,
        "test_malformed_kafka_message": TEXT,
        "test_record_schema_subject_compatibility": IDS,
        "test_regression_compatibility_should_not_give_internal_server_error_on_invalid_schema_type": WORDS,
        "test_regression_invalid_schema_type_should_not_give_internal_server_error": WORDS,
        "test_schema_body_validation": CODE,
        "test_schema_hard_delete_and_recreate": NEW_ID,
        "test_schema_hard_delete_version": WORDS,
        "test_schema_json_subject_comparison": TEXT,
        "test_schema_listing": IDS,
        "test_schema_missing_body": CODE,
        "test_schema_non_compliant_name_in_existing": AVRO_NAMES,
        "test_schema_non_compliant_namespace_in_existing": AVRO_NAMES,
        "test_schema_recreate_after_odd_hard_delete": NEW_ID,
        "test_schema_same_subject": FIELDS,
        "test_schema_same_subject_unnamed": TEXT,
        "test_schema_subject_post_invalid": WORDS,
        "test_schema_versions_multiple_subjects_same_schema": ORDER,
        "test_union_comparing_to_other_types": FIELDS,
    },
    "test_schema_compatibility.py": {
        "test_schema_compatibility": WORDS,
    },
    "test_schema_avro_references.py": {
        "test_avro_incompatible_name_references": WORDS,
        "test_avro_references_compatibility": WORDS,
        "test_basic_avro_references": TEXT,
    },
    "test_schema_protobuf.py": {
        "test_protobuf_missing_google_import": PROTOBUF,
        "test_protobuf_schema_references": IDS,
        "test_protobuf_schema_verifier": IDS,
        "test_references": IDS,
    },
    "test_jsonschema.py": {
        "test_schemaregistry_boolean_schemas_are_backward_compatible": RULES,
        "test_schemaregistry_object_properties": RULES,
        "test_schemaregistry_property_names": RULES,
        "test_schemaregistry_schemaregistry_extra_field_with_closed_model_is_incompatible": RULES,
        "test_schemaregistry_true_and_false_schemas": RULES,
        "test_schemaregistry_true_schema_is_compatible_with_object": RULES,
    },
    "test_schema_registry_mode.py": {
        "test_subject_mode": MODE,
    },
    "test_dependencies_compatibility_protobuf.py": {
        "test_protobuf_schema_references_rejected_values": WORDS,
    },
    "test_client_protobuf.py": {},
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
    assert (outcome.failed, outcome.passed > 0) == (set(DIFFERENT[name]), True), outcome.output


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
