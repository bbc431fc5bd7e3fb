"""The file that says what is encrypted at rest: an EncryptionConfiguration of apiserver.config.k8s.io/v1.

Pure but for reading the file. Of Kubernetes' providers there are `aesgcm` and `identity`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dray.store.encryption import AesGcm, Encryption, Identity, Provider, Rule

API_VERSION: Final = "apiserver.config.k8s.io/v1"
KIND: Final = "EncryptionConfiguration"
_OTHERS: Final = ("aescbc", "secretbox", "kms")
_LENGTHS: Final = (16, 24, 32)


class EncryptionConfigurationError(Exception):
    """A configuration cannot be used. The message names the file, the field and what is wrong; never a key."""


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    secret: str


class _Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: tuple[_Key, ...]


class _Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    aesgcm: _Keys | None = None
    identity: dict[str, Any] | None = None
    aescbc: Any = None
    secretbox: Any = None
    kms: Any = None


class _Resources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    resources: tuple[str, ...]
    providers: tuple[_Provider, ...]


class _Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    resources: tuple[_Resources, ...]
    metadata: dict[str, Any] = {}


def read_encryption(path: Path) -> Encryption:
    """The rules in a file. Raises EncryptionConfigurationError."""
    where = f"encryption configuration {path}"
    try:
        document = yaml.safe_load(path.read_bytes())
        found = msgspec.convert(document, _Configuration)
    except OSError as error:
        raise EncryptionConfigurationError(f"cannot read {where}: {error.strerror}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)  # the text around it may hold a key
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise EncryptionConfigurationError(f"{where} is not YAML{line}.") from None
    except msgspec.ValidationError as error:
        raise EncryptionConfigurationError(f"{where}: {error}") from None
    problem = next(_problems(found), "")
    if problem:
        raise EncryptionConfigurationError(f"{where}: {problem}.")
    return Encryption([Rule(each.resources, tuple(map(_provider, each.providers))) for each in found.resources])


def _provider(given: _Provider) -> Provider:
    if given.aesgcm is None:
        return Identity()
    return AesGcm({key.name: AESGCM(_secret(key)) for key in given.aesgcm.keys})


def _secret(key: _Key) -> bytes:
    """Raises ValueError."""
    return base64.b64decode(key.secret, validate=True)


def _problems(found: _Configuration) -> Iterator[str]:
    if (found.api_version, found.kind) != (API_VERSION, KIND):
        yield f"it is a {found.kind} of {found.api_version}, not an {KIND} of {API_VERSION}"
    if not found.resources:
        yield "resources: at least one entry is needed, else nothing is encrypted"
    named: dict[str, str] = {}
    for number, entry in enumerate(found.resources):
        where = f"resources[{number}]"
        if not entry.resources:
            yield f"{where}.resources: at least one is needed, such as secrets"
        for resource in entry.resources:
            yield from _resource_problems(f"{where}.resources", resource, named)
            named[resource] = where
        if not entry.providers:
            yield f"{where}.providers: at least one is needed; `identity: {{}}` does not encrypt"
        for index, provider in enumerate(entry.providers):
            yield from _provider_problems(f"{where}.providers[{index}]", provider)
        yield from _key_name_problems(f"{where}.providers", entry.providers)


def _resource_problems(where: str, resource: str, named: dict[str, str]) -> Iterator[str]:
    plural, _, group = resource.partition(".")
    is_wildcard = plural == "*"
    if (
        not plural
        or resource != resource.lower()
        or "/" in resource
        or "*" in group.removeprefix("*")
        or resource == "*"
    ):
        yield f"{where}: {resource!r} must be a resource such as secrets or widgets.example.com, or *., *.GROUP or *.*"
    if group == "*" and not is_wildcard:
        yield f"{where}: {resource!r} must name a group, or all resources (*.*)"
    for other, place in named.items():
        if other == resource:
            yield f"{where}: {resource!r} is named in {place} already"
        if _covers(other, resource):
            yield f"{where}: {resource!r} has no effect, because {other!r} in {place} comes before it"


def _covers(earlier: str, resource: str) -> bool:
    """Whether an earlier wildcard leaves nothing for a later name."""
    if earlier == resource:
        return False
    return earlier == "*.*" or (earlier.startswith("*.") and earlier[2:] == resource.partition(".")[2])


def _provider_problems(where: str, provider: _Provider) -> Iterator[str]:
    for name in _OTHERS:
        if getattr(provider, name) is not None:
            yield f"{where}: {name} is not there; use aesgcm or identity"
    if (provider.aesgcm is None) == (provider.identity is None):
        yield f"{where}: exactly one provider is needed, aesgcm or identity"
    if provider.identity:
        yield f"{where}.identity: must be empty ({{}})"
    if provider.aesgcm is None:
        return
    if not provider.aesgcm.keys:
        yield f"{where}.aesgcm.keys: at least one is needed"
    for number, key in enumerate(provider.aesgcm.keys):
        place = f"{where}.aesgcm.keys[{number}]"
        if not key.name or ":" in key.name:
            yield f"{place}.name: must not be empty, and must not have a colon"
        try:
            length = len(_secret(key))
        except (binascii.Error, ValueError):
            yield f"{place}.secret: must be base64, such as the output of: head -c 32 /dev/urandom | base64"
            return
        if length not in _LENGTHS:
            yield f"{place}.secret: must be 16, 24 or 32 bytes in base64, and is {length}"


def _key_name_problems(where: str, providers: tuple[_Provider, ...]) -> Iterator[str]:
    names = [key.name for provider in providers if provider.aesgcm is not None for key in provider.aesgcm.keys]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        yield f"{where}: two keys have the name {twice!r}"
