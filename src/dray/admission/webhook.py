"""A webhook of a configuration, compiled: which requests it is asked about, and how."""

from __future__ import annotations

from typing import Final

from dray.admission.conditions import Conditions
from dray.admission.evaluation import letters_to_compile
from dray.admission.matching import Matcher
from dray.api.generated.admissionregistration import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)

__all__ = ["Webhook", "webhooks_of"]

DEFAULT_SECONDS: Final = 10
_OFFERS: Final = frozenset({"authorizer"})
_WITHOUT_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")


class Webhook:
    """One webhook. Its conditions are compiled when they are first needed, by `compile`."""

    def __init__(self, configuration: str, index: int, stored: MutatingWebhook | ValidatingWebhook) -> None:
        self.configuration: Final = configuration
        self.name: Final = stored.name
        self.key: Final = (configuration, index, stored.name)
        self.client: Final = stored.client_config
        self.seconds: Final = float(stored.timeout_seconds or DEFAULT_SECONDS)
        self.ignores_failures: Final = stored.failure_policy == "Ignore"
        self.can_dry_run: Final = stored.side_effects in _WITHOUT_SIDE_EFFECTS
        self.is_reinvoked: Final = getattr(stored, "reinvocation_policy", None) == "IfNeeded"
        self.review_versions: Final = stored.admission_review_versions
        self.matcher: Final = Matcher(
            stored.rules,
            match_policy=stored.match_policy or "Equivalent",
            namespaces=stored.namespace_selector,
            objects=stored.object_selector,
        )
        self.conditions: Conditions | None = None
        self.is_compiled = not stored.match_conditions
        self._stored = stored.match_conditions

    @property
    def size(self) -> int:
        """How many letters there are to compile."""
        return letters_to_compile(condition.expression for condition in self._stored)

    def compile(self) -> None:
        """Compiles the conditions; what is wrong with one is told when it is evaluated."""
        self.conditions = Conditions(self._stored, _OFFERS)
        self.is_compiled = True


def webhooks_of(stored: MutatingWebhookConfiguration | ValidatingWebhookConfiguration) -> tuple[Webhook, ...]:
    """The webhooks of a configuration, in order."""
    found: list[MutatingWebhook | ValidatingWebhook] = [*stored.webhooks]
    return tuple(Webhook(stored.metadata.name, index, each) for index, each in enumerate(found))
