"""What asking a policy or a webhook takes: whether it is concerned, what it sees, and time to evaluate expressions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from dray import cel
from dray.admission.authorizer import Authorizer, Decision, ResourceCheck
from dray.admission.evaluation import Given
from dray.admission.matching import BadSelector, Matcher, NamespaceMissing
from dray.admission.params import BadParams, UnknownParamKind, collect_params
from dray.admission.policies import Binding
from dray.admission.request import Resource
from dray.api.generated.admissionregistration import ParamKind, ParamRef
from dray.api.kinds import NAMESPACES
from dray.server import errors
from dray.server.admission.admission_request import AdmissionRequest
from dray.server.admission.policy_inputs import StoredParams, asking, namespace_labels
from dray.server.admission.slow_policies import within_time
from dray.server.beside import MANY
from dray.server.security.authorization import Authorizer as Rights

__all__ = ["Concern", "PolicyRunner", "Unusable"]

QUICK_TO_COMPILE: Final = 1_000
"""Letters. What is longer is compiled beside the event loop."""

T = TypeVar("T")
B = TypeVar("B", bound=Binding)


_NO_PARAMS: Sequence[Any] = (None,)
"""A policy without parameters is evaluated once."""


class _Compilable(Protocol):
    is_compiled: bool

    @property
    def size(self) -> int: ...

    def compile(self) -> None: ...


class _Policy(Protocol):
    @property
    def matcher(self) -> Matcher: ...

    @property
    def param_kind(self) -> ParamKind | None: ...


class Concern(NamedTuple, Generic[B]):
    """A binding that makes a policy concern a request: the resource it is about, and the parameters to use in turn."""

    resource: Resource
    binding: B
    params: Sequence[Any]


class Unusable(NamedTuple):
    """Why a policy cannot be asked; with the name of a `binding`, on account of that one alone."""

    message: str
    binding: str = ""


class PolicyRunner:
    """One per server."""

    def __init__(self, rights: Rights) -> None:
        self._ask = asking(rights)

    def matched(self, asked: AdmissionRequest, matcher: Matcher) -> Resource | None:
        """The resource that rules and selectors are about. Raises ApiError, and BadSelector."""
        try:
            return matcher.match(asked.request, *asked.labelled, lambda name: namespace_labels(asked.engine, name))
        except NamespaceMissing as missing:
            raise errors.not_found(NAMESPACES, missing.name) from None

    def given(self, asked: AdmissionRequest, resource: Resource, *, needs_namespace: bool = True) -> Given:
        """What is seen of a request, in the version that a rule is about. Raises ApiError."""
        request, engine = asked.request, asked.engine
        namespace = None
        if needs_namespace and request.namespace and not request.is_about_namespace:
            namespace = engine.namespace(request.namespace)
            if namespace is None:
                raise errors.not_found(NAMESPACES, request.namespace)
        return Given(
            request,
            resource,
            asked.in_version(asked.new, resource),
            asked.in_version(asked.old, resource),
            namespace,
            Authorizer(self._ask, asked.call.caller),
        )

    async def concerns(
        self, asked: AdmissionRequest, policy: _Policy, bindings: Iterable[B]
    ) -> list[Concern[B] | Unusable]:
        """The bindings by which a policy is about a request, and what is wrong with it or with others of them.
        Raises ApiError."""
        try:
            resource = self.matched(asked, policy.matcher)
        except BadSelector as error:
            return [Unusable(f"failed to configure policy: {error}")]
        found: list[Concern[B] | Unusable] = []
        if resource is None:
            return found
        for binding in bindings:
            try:
                if not binding.matcher.takes_all and self.matched(asked, binding.matcher) is None:
                    continue
                kind, reference = policy.param_kind, binding.params
                params = _NO_PARAMS
                if kind is not None and reference is not None:
                    params = await self._params(asked, kind, reference)
            except UnknownParamKind as error:
                return [*found, Unusable(f"failed to configure policy: {error}")]
            except (BadSelector, BadParams) as error:
                found.append(Unusable(f"failed to configure binding: {error}", binding.name))
                continue
            found.append(Concern(resource, binding, params))
        return found

    async def _params(self, asked: AdmissionRequest, kind: ParamKind, reference: ParamRef) -> Sequence[Any]:
        """The objects that a policy is evaluated with. Among many they are looked for beside the loop: whoever may
        create them decides how many there are. Raises BadParams."""
        namespace, source = asked.request.namespace, StoredParams(asked.engine)
        if reference.name:
            return collect_params(kind, reference, namespace, source)
        taken = source.taken(kind, reference.namespace or namespace)
        if len(taken.records) <= MANY:
            return collect_params(kind, reference, namespace, taken)
        return await asked.engine.beside(asked.call, collect_params, kind, reference, namespace, taken)

    async def compiled(self, asked: AdmissionRequest, policy: _Compilable) -> None:
        """Makes sure that expressions are compiled."""
        if policy.is_compiled:
            return
        if policy.size <= QUICK_TO_COMPILE:
            policy.compile()
        else:
            await asked.engine.beside(asked.call, policy.compile)

    async def evaluate(
        self,
        asked: AdmissionRequest,
        given: Given,
        evaluate: Callable[[Given, cel.Budget], T],
        *,
        is_long: bool = False,
    ) -> T:
        """What expressions say: at once, or beside the event loop if that takes too long, when it is the caller's turn.

        Raises TookTooLong.

        Large objects, and what `is_long` for another reason, go there right away: only to make a large object what
        expressions see takes long.
        """
        if not asked.call.is_large and not is_long:
            with contextlib.suppress(cel.Postponed):
                return evaluate(given, cel.NOW)
        patient = msgspec.structs.replace(given, authorizer=_asked_from_thread(given.authorizer))
        return await asked.engine.beside(asked.call, within_time, asked.call, lambda budget: evaluate(patient, budget))


def _asked_from_thread(authorizer: Authorizer) -> Authorizer:
    """The same, for an evaluation beside the event loop: rights are looked up on the loop, which owns them."""
    loop = asyncio.get_running_loop()

    def ask(who: Authorizer, verb: str, what: ResourceCheck | str) -> Decision:
        async def answer() -> Decision:
            return authorizer.ask(who, verb, what)

        return asyncio.run_coroutine_threadsafe(answer(), loop).result()

    return replace(authorizer, ask=ask)
