"""SCRAM users, delegation tokens and logins on PLAINTEXT, where tokens and logins are refused."""

from __future__ import annotations

from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from moldau.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.protocol.schema import Message
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker

SHA_256, SHA_512 = 1, 2


def _upsert(user: str, mechanism: int = SHA_256, iterations: int = 4096, password: bytes = b"salted"):
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=password
    )


def _delete(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def _alterations(user: str) -> dict[str, AlterUserScramCredentialsRequest]:
    alter = AlterUserScramCredentialsRequest
    return {
        "delete a missing one": alter(deletions=[_delete(user)]),
        "add": alter(upsertions=[_upsert(user)]),
        "replace": alter(upsertions=[_upsert(user, iterations=16384)]),
        "another mechanism": alter(upsertions=[_upsert(user, SHA_512, 8192)]),
        "two mechanisms": alter(upsertions=[_upsert(user), _upsert(user, SHA_512)]),
        "delete and add": alter(deletions=[_delete(user)], upsertions=[_upsert(user, SHA_512)]),
        "delete twice": alter(deletions=[_delete(user), _delete(user)]),
        "few iterations": alter(upsertions=[_upsert(user, iterations=4095)]),
        "many iterations": alter(upsertions=[_upsert(user, iterations=16385)]),
        "few iterations first": alter(upsertions=[_upsert(user, iterations=1), _upsert(user)]),
        "an unknown mechanism": alter(upsertions=[_upsert(user, 3)]),
        "delete an unknown mechanism": alter(deletions=[_delete(user, 0)]),
        "no name": alter(upsertions=[_upsert("")]),
        "no password": alter(upsertions=[_upsert(user, password=b"")]),
        "nothing": alter(),
        "delete": alter(deletions=[_delete(user)]),
    }


def scram_users(broker: Broker) -> None:
    for controller in (False, True):
        where = "controller" if controller else "broker"
        user = f"scram-{where}"
        for label, request in _alterations(user).items():
            broker.ask(f"{where} {label}", request, 0, controller=controller)
    user = "scram-broker"

    def described() -> bool:
        answer = broker.call(DescribeUserScramCredentialsRequest(users=[UserName(name=user)]), 0)
        return [info.mechanism for info in answer.results[0].credential_infos] == [SHA_512]

    eventually(described, what="the broker knows the user")
    for label, names in (("one", [user]), ("unknown", ["nobody"]), ("twice", [user, user]), ("empty", [""])):
        users = [UserName(name=name) for name in names]
        broker.ask(f"describe {label}", DescribeUserScramCredentialsRequest(users=users), 0)
        controller_request = DescribeUserScramCredentialsRequest(users=users)
        broker.ask(f"controller, describe {label}", controller_request, 0, controller=True)


def tokens_without_a_login(broker: Broker) -> None:
    renewers = [CreatableRenewers(principal_type="User", principal_name="bob")]
    owner = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    for controller in (False, True):
        where = "controller" if controller else "broker"
        requests: dict[str, tuple[Message, tuple[int, ...]]] = {
            "create": (CreateDelegationTokenRequest(renewers=renewers), (1, 2)),
            "create for another": (CreateDelegationTokenRequest(**owner), (3,)),
            "renew": (RenewDelegationTokenRequest(hmac=b"x"), (1, 2)),
            "expire": (ExpireDelegationTokenRequest(hmac=b"x"), (1, 2)),
        }
        for label, (request, versions) in requests.items():
            for version in versions:
                broker.ask(f"{where} v{version} {label}", request, version, controller=controller)
    for version in (1, 2, 3):
        for label, owners in (
            ("all", None),
            ("none", []),
            ("some", [DescribeDelegationTokenOwner(principal_type="User", principal_name="a")]),
        ):
            request = DescribeDelegationTokenRequest(owners=owners)
            broker.ask(f"v{version} describe {label}", request, version)
            broker.ask(f"controller, v{version} describe {label}", request, version, controller=True)


def logins(broker: Broker) -> None:
    for controller in (False, True):
        where = "controller" if controller else "broker"
        for version in (0, 1):
            for mechanism in ("PLAIN", "unknown", ""):
                handshake = SaslHandshakeRequest(mechanism=mechanism)
                broker.ask(f"{where} v{version} {mechanism}", handshake, version, controller=controller)
        for version in (0, 1, 2):
            token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
            broker.ask(f"{where} v{version} a token", token, version, controller=controller)


SCENES = {
    "SCRAM users": scram_users,
    "tokens without a login": tokens_without_a_login,
    "logins without SASL": logins,
}
