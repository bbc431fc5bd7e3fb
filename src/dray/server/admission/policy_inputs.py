"""What policies look at besides the request: namespaces, parameters, and the rights of the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dray.admission.authorizer import Ask, Authorizer, Decision, ResourceCheck
from dray.api.generated.admissionregistration import ParamKind
from dray.api.meta import Object
from dray.api.registry import Kind, UnknownKind
from dray.server.engine import Engine
from dray.server.security.authorization import Attributes, selected_fields
from dray.server.security.authorization import Authorizer as Rights
from dray.server.security.identity import Identity, authenticated, service_account_groups, service_account_user
from dray.store import Key, Record
from dray.validation import from_hub


class TakenParams(NamedTuple):
    """Parameters of one kind in one namespace, for a binding that selects some of them."""

    namespaced: bool | None
    records: tuple[Record, ...] = ()

    def is_namespaced(self, _kind: ParamKind) -> bool | None:
        """Whether objects of the kind are in namespaces; None if there is no such kind."""
        return self.namespaced

    def get(self, kind: ParamKind, namespace: str, name: str) -> Any:
        """The object of a name; None if there is none."""
        found = (one for one in self.records if one.key.name == name and one.key.namespace == namespace)
        return next((from_hub(one.obj, kind.api_version) for one in found), None)

    def list(self, kind: ParamKind, _namespace: str) -> Sequence[Any]:
        """All objects."""
        return [from_hub(record.obj, kind.api_version) for record in self.records]


class StoredParams:
    """Parameters, in the store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def is_namespaced(self, kind: ParamKind) -> bool | None:
        """Whether objects of a kind are in namespaces; None if there is no such kind."""
        found = self._kind(kind)
        return None if found is None else found.namespaced

    def get(self, kind: ParamKind, namespace: str, name: str) -> Any:
        """The object of a name; None if there is none."""
        found = self._kind(kind)
        record = None if found is None else self._engine.store.get(Key(found.storage.resource, namespace, name))
        return None if record is None else from_hub(record.obj, kind.api_version)

    def list(self, kind: ParamKind, namespace: str) -> Sequence[Any]:
        """All objects of a kind in a namespace."""
        return self.taken(kind, namespace).list(kind, namespace)

    def taken(self, kind: ParamKind, namespace: str) -> TakenParams:
        """What there is of a kind in a namespace now, to be looked at in a thread, where the store is not."""
        found = self._kind(kind)
        if found is None or (found.namespaced and not namespace):
            return TakenParams(None if found is None else found.namespaced)
        place = namespace if found.namespaced else None
        return TakenParams(found.namespaced, tuple(self._engine.store.list(found.storage.resource, place).records))

    def _kind(self, kind: ParamKind) -> Kind | None:
        try:
            return self._engine.kinds.kind_of(Object(kind=kind.kind, api_version=kind.api_version))
        except UnknownKind:
            return None


def namespace_labels(engine: Engine, name: str) -> Mapping[str, str] | None:
    """The labels of a namespace; None if there is none."""
    found = engine.namespace(name)
    return None if found is None else found.metadata.labels


def asking(rights: Rights) -> Ask:
    """What expressions ask about somebody's rights."""

    def ask(who: Authorizer, verb: str, what: ResourceCheck | str) -> Decision:
        identity = who.caller
        assert isinstance(identity, Identity)
        if who.account is not None:
            namespace, name = who.account
            identity = authenticated(service_account_user(namespace, name), service_account_groups(namespace))
        if isinstance(what, str):
            asked = Attributes(verb, path=what)
        else:
            fields = selected_fields(verb, what.fields)
            asked = Attributes(
                verb, what.group, what.resource, what.subresource, what.namespace, what.name, fields=fields
            )
        decision = rights.allowed(identity, asked)
        return Decision(decision.allowed, decision.reason)

    return ask
