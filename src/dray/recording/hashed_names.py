"""Names replaced by hashes, the same name by the same hash everywhere, so that references still lead where they led.

Hashed are the names of objects, pools, devices, requests, counters and containers, wherever they are written, and the
values of labels with the selectors that ask for them; of devices also attributes called a uuid or serial number. What
decisions are made of stays readable: drivers, other attributes and capacities of devices, expressions, resources, the
keys of labels and taints. The key of the hash is drawn for each recording and kept nowhere: nobody can try out names.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Any, Final

from dray.api.extended_resources import IMPLICIT
from dray.api.pod_claims import POD_CLAIM_NAME

_NAMES: Final = frozenset(
    {
        "name",
        "namespace",
        "nodeName",
        "resourceClaimName",
        "resourceClaimTemplateName",
        "deviceClassName",
        "podGroupName",
        "parentCompositePodGroupName",
        "priorityClassName",
        "pool",
        "device",
        "request",
        "requestName",
        "containerName",
        "counterSet",
    }
)
_LISTS: Final = frozenset({"requests", "values", "namespaces"})
"""Lists of names, or of values of labels."""
_MAPS: Final = frozenset({"labels", "matchLabels", "nodeSelector"})
_NUMERIC: Final = frozenset({"Gt", "Lt"})
_IDENTITY: Final = re.compile("uuid|serial", re.IGNORECASE)
"""Attributes that tell one device from all others."""
_AMOUNTS: Final = frozenset({"capacity", "allocatable", "limits"})
_AS_IT_IS: Final = frozenset({"annotations", "selectors", "opaque"})
SIZE: Final = 6
"""Bytes of a hash: of a million names, one in five hundred recordings has two with the same."""


class HashedNames:
    """Hashes with a key of its own."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(16)

    def name(self, text: str) -> str:
        """The hash of a name; of each part of one with slashes. Nothing stays nothing."""
        return "/".join(self._hash(part) for part in text.split("/"))

    def _hash(self, part: str) -> str:
        if not part:
            return part
        return "x" + hashlib.blake2s(part.encode(errors="surrogatepass"), digest_size=SIZE, key=self._key).hexdigest()

    def document(self, value: Any) -> Any:
        """A document with hashes for names."""
        if isinstance(value, dict):
            is_number = value.get("operator") in _NUMERIC
            return {self._resource(key): self._field(key, one, is_number=is_number) for key, one in value.items()}
        if isinstance(value, list):
            return [self.document(one) for one in value]
        return value

    def _field(self, key: str, value: Any, *, is_number: bool) -> Any:
        if isinstance(value, str):
            return self.name(value) if key in _NAMES else self._resource(value)
        if isinstance(value, list) and key in _LISTS and all(isinstance(one, str) for one in value):
            return value if is_number else [self.name(one) for one in value]
        if isinstance(value, dict) and key in _MAPS and all(isinstance(one, str) for one in value.values()):
            return {label: self.name(one) for label, one in value.items()}
        if key == "annotations" and isinstance(value, dict) and POD_CLAIM_NAME in value:
            return {**value, POD_CLAIM_NAME: self.name(str(value[POD_CLAIM_NAME]))}
        if key == "attributes" and isinstance(value, dict):
            return {name: self._identity(one) if _IDENTITY.search(name) else one for name, one in value.items()}
        if key in _AMOUNTS and isinstance(value, dict):
            return {self._resource(name): one for name, one in value.items()}
        return value if key in _AS_IT_IS else self.document(value)

    def _resource(self, text: str) -> str:
        """The name of a resource as it is, but for one that is made of the name of a class."""
        return IMPLICIT + self._hash(text.removeprefix(IMPLICIT)) if text.startswith(IMPLICIT) else text

    def _identity(self, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("string"), str):
            return {**value, "string": self._hash(value["string"])}
        return value
