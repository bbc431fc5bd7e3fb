"""Dynamic admission: asks the policies and webhooks that people have configured.

As in Kubernetes, nobody is asked about the objects that configure admission: who has locked everybody out can undo it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.api.meta import Object
from dray.server.admission.admission_request import AdmissionRequest
from dray.server.admission.mutating_policies import MutatingPolicies
from dray.server.admission.policy_runner import PolicyRunner
from dray.server.admission.reinvocation import Reinvocation
from dray.server.admission.validating_policies import ValidatingPolicies
from dray.server.admission.webhooks import Webhooks
from dray.server.engine import Call, Engine
from dray.server.indexes.admission_configuration import ADMISSION_GROUP, AdmissionConfiguration, Hooks
from dray.server.objects import with_metadata
from dray.server.security.authorization import Authorizer
from dray.store import Store

REVIEWS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""Groups whose objects are questions: those are answered without asking anybody."""


ROUNDS: Final = 2
"""Who wants to see what others changed after them is asked a second time, and no more."""


class DynamicAdmission:
    """Runs after all built-in plugins: what they refuse is not asked about, and what they change is seen."""

    def __init__(self, store: Store, rights: Authorizer) -> None:
        self._configuration = AdmissionConfiguration(store)
        self._runner = PolicyRunner(rights)
        self._mutating_policies = MutatingPolicies(self._runner)
        self._validating_policies = ValidatingPolicies(self._runner)
        self._webhooks = Webhooks(self._runner)

    @property
    def hooks(self) -> Hooks | None:
        """Whom to ask; None if nobody has configured anything."""
        return self._configuration.hooks

    async def mutate(
        self,
        hooks: Hooks,
        engine: Engine,
        call: Call,
        new: Object,
        old: Object | None,
        built_in: Callable[[Object], Object],
    ) -> Object:
        """What everybody makes of the object. Who has something changed has the `built_in` plugins look again.
        A name that the server has chosen is not shown to them, as in Kubernetes, where it is chosen after them.

        Raises ApiError.
        """
        if call.route.kind.group == ADMISSION_GROUP or not (hooks.mutating_webhooks or hooks.mutating_policies):
            return new
        chosen = new.metadata.name if call.is_unnamed and old is None else ""
        asked = AdmissionRequest(engine, call, with_metadata(new, name="") if chosen else new, old)
        await self._mutate(asked, hooks, built_in)
        made = asked.new if asked.new is not None else new
        return with_metadata(made, name=chosen) if chosen and not made.metadata.name else made

    async def check(self, hooks: Hooks, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Lets anybody who is configured refuse. Raises ApiError."""
        if call.route.kind.group == ADMISSION_GROUP or _is_post(call):
            return
        asked = AdmissionRequest(engine, call, new, old)
        if new is None and hooks.mutating_webhooks:
            await self._mutate(asked, hooks, None)  # whoever changes objects is asked about deletes, too
        await self._check(asked, hooks)

    async def post(self, engine: Engine, call: Call, posted: Object) -> Object:
        """What is posted where nothing is stored, such as a binding, after everybody was asked. Raises ApiError."""
        hooks = self._configuration.hooks
        if hooks is None or call.route.kind.group in REVIEWS:
            return posted
        asked = AdmissionRequest(engine, call, posted, None, is_posted=True)
        await self._mutate(asked, hooks, None)
        await self._check(asked, hooks)
        return asked.new if asked.new is not None else posted

    async def _mutate(self, asked: AdmissionRequest, hooks: Hooks, built_in: Callable[[Object], Object] | None) -> None:
        before = asked.new
        policies, webhooks = Reinvocation(), Reinvocation()
        for _ in range(ROUNDS):
            if hooks.mutating_policies:
                await self._mutating_policies.mutate(asked, hooks.mutating_policies, policies)
            if hooks.mutating_webhooks:
                await self._webhooks.mutate(asked, hooks.mutating_webhooks, webhooks)
            if policies.round or asked.new is None or asked.new == before:
                return
            policies.next_round()
            webhooks.next_round()
            if built_in is not None:
                asked.new = built_in(asked.new)

    async def _check(self, asked: AdmissionRequest, hooks: Hooks) -> None:
        if hooks.validating_policies:
            await self._validating_policies.check(asked, hooks.validating_policies)
        if hooks.validating_webhooks:
            await self._webhooks.check(asked, hooks.validating_webhooks)

    async def close(self) -> None:
        """Lets go of the store and of connections."""
        self._configuration.close()
        await self._webhooks.close()


def _is_post(call: Call) -> bool:
    """Whether something is posted below an object: that was asked about when it was posted."""
    return call.route.verb == "create" and bool(call.route.subresource)
