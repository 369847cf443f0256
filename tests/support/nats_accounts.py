"""An operator, an account with JetStream and a user of NATS, made here, as `nsc` makes them.

A creds file holds a token that the account has signed and the user's own seed; the server trusts
the operator, who has signed for the account.
"""

import base64
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import nkeys


class Key(NamedTuple):
    pair: Any
    seed: str

    @property
    def name(self) -> str:
        return str(self.pair.public_key.decode())


def _key(prefix: int) -> Key:
    seed = nkeys.encode_seed(os.urandom(32), prefix)
    return Key(nkeys.from_seed(bytearray(seed)), bytes(seed).decode())


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _signed(issuer: Key, subject: Key, claims: dict[str, Any]) -> str:
    head = {"typ": "JWT", "alg": "ed25519-nkey"}
    body = {"iat": int(time.time()), "iss": issuer.name, "sub": subject.name, "name": "tests"}
    body["nats"] = {"version": 2, **claims}
    text = ".".join(_part(json.dumps(part).encode()) for part in (head, body))
    return f"{text}.{_part(issuer.pair.sign(text.encode()))}"


def accounts(creds: Path) -> str:
    """Write the credentials of a user; what the server's configuration needs to know of it."""
    operator = _key(nkeys.PREFIX_BYTE_OPERATOR)
    account, system = (_key(nkeys.PREFIX_BYTE_ACCOUNT) for _ in range(2))
    user = _key(nkeys.PREFIX_BYTE_USER)
    all_of_it = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn"), -1)
    store = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
    limits = {**all_of_it, **store, "wildcards": True}
    operators = _signed(operator, operator, {"type": "operator"})
    ours = _signed(operator, account, {"type": "account", "limits": limits})
    its = _signed(operator, system, {"type": "account", "limits": all_of_it})
    users = _signed(account, user, {"type": "user", "subs": -1, "data": -1, "payload": -1})
    creds.write_text(
        f"-----BEGIN NATS USER JWT-----\n{users}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
    return (
        f"operator: {operators}\nresolver: MEMORY\nsystem_account: {system.name}\n"
        f"resolver_preload: {{ {account.name}: {ours}, {system.name}: {its} }}\n"
    )
