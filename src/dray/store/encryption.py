"""Encryption at rest: what of each resource is on disk, or in etcd, as Kubernetes' EncryptionConfiguration has it.

::

    k8s:enc:aesgcm:v1:<name of the key>:<nonce of 12 bytes><AES-GCM of the object's bytes>

The first provider of a resource writes; all of them read. The resource, namespace and name are authenticated along,
so that nobody who can write there can put one object in another's place. What is sealed is copied as it is, from one
engine to the other and into backups: nobody needs a key for that. No I/O, but for random nonces.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dray.store.errors import StoreError
from dray.store.records import Key

OPTION: Final = "--encryption-provider-config"
_SEALED: Final = b"k8s:enc:"
_AESGCM: Final = b"k8s:enc:aesgcm:v1:"
_NONCE_BYTES: Final = 12


class Undecipherable(StoreError):
    """What is stored cannot be read with the keys that there are. The message names the object, and what to do."""


class AesGcm(NamedTuple):
    """Keys by name; the first one encrypts."""

    keys: Mapping[str, AESGCM]


class Identity(NamedTuple):
    """Not encrypted."""


Provider = AesGcm | Identity


class Rule(NamedTuple):
    """What some resources (`secrets`, `plural.group`, `*.group`, `*.` or `*.*`) are written and read with."""

    resources: tuple[str, ...]
    providers: tuple[Provider, ...]


class Opened(NamedTuple):
    """An object's bytes, and whether they should be written anew, because what writes now is something else."""

    data: bytes
    is_outdated: bool


_PLAIN: Final = Rule(("*.*",), (Identity(),))


def is_sealed(data: bytes) -> bool:
    """Whether bytes are encrypted: objects begin with a brace."""
    return data.startswith(_SEALED)


class Encryption:
    """Rules, of which the first that names a resource counts; what none names is not encrypted."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = tuple(rules)
        self._found: dict[str, Rule] = {}

    def seal(self, key: Key, data: bytes) -> bytes:
        """An object's bytes as they are stored."""
        first = self._rule(key.resource).providers[0]
        if isinstance(first, Identity):
            return data
        name, cipher = next(iter(first.keys.items()))
        nonce = os.urandom(_NONCE_BYTES)
        return b"".join((_AESGCM, name.encode(), b":", nonce, cipher.encrypt(nonce, data, _place(key))))

    def open(self, key: Key, data: bytes) -> Opened:
        """What was stored. Raises Undecipherable."""
        providers = self._rule(key.resource).providers
        if not is_sealed(data):
            if isinstance(providers[0], Identity):
                return Opened(data, is_outdated=False)
            if not any(isinstance(provider, Identity) for provider in providers):
                raise Undecipherable(
                    f"{key} is not encrypted, and {OPTION} does not allow that: add `identity: {{}}` as its last "
                    "provider until everything is written anew, and five minutes longer, for history"
                )
            return Opened(data, is_outdated=True)
        if not data.startswith(_AESGCM):
            raise Undecipherable(f"{key} is encrypted by a provider that dray does not have")
        name, _, sealed = data[len(_AESGCM) :].partition(b":")
        for number, provider in enumerate(providers):
            cipher = provider.keys.get(name.decode()) if isinstance(provider, AesGcm) else None
            if cipher is None or not isinstance(provider, AesGcm):
                continue
            try:
                opened = cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _place(key))
            except InvalidTag:
                raise Undecipherable(
                    f"{key} cannot be decrypted with the key {name.decode()!r}: another key has that name in "
                    f"{OPTION}, or the data was changed"
                ) from None
            return Opened(opened, number > 0 or name.decode() != next(iter(provider.keys)))
        raise Undecipherable(
            f"{key} is encrypted with the key {name.decode()!r}, which is not among those for {key.resource}: "
            f"give it with {OPTION}"
        )

    def _rule(self, resource: str) -> Rule:
        rule = self._found.get(resource)
        if rule is None:
            rule = next((rule for rule in self._rules if _names(rule, resource)), _PLAIN)
            self._found[resource] = rule
        return rule


NONE: Final = Encryption()


def _names(rule: Rule, resource: str) -> bool:
    group = resource.partition(".")[2]
    return not {resource, f"*.{group}", "*.*"}.isdisjoint(rule.resources)


def _place(key: Key) -> bytes:
    return "/".join(key).encode()
