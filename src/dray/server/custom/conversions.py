"""Custom objects in other versions, where a definition has a webhook that converts them.

Objects are stored in one version. Whoever asks in another gets what the webhook makes of them; without a webhook only
the apiVersion differs, and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from dray.api.custom import CustomObject
from dray.api.generated.admissionregistration import ServiceReference, WebhookClientConfig
from dray.api.registry import Kind
from dray.custom import conversion
from dray.custom.conversion import ConversionFailed
from dray.custom.kinds import CustomKind
from dray.server import errors
from dray.server.engine import Engine
from dray.server.objects import finish
from dray.server.webhooks import WebhookClient, WebhookFailed, find_target
from dray.server.webhooks.targets import NoTarget
from dray.store import Event, Record, in_parts

SECONDS: Final = 30.0
MOST_OBJECTS: Final = 1000
MOST_ASKED: Final = 2 << 20
"""Objects, and their bytes, in one question. The answer may be four times as long."""


class Conversions:
    """Asks the webhooks of definitions. Everything raises ApiError (500) if they do not answer as they should.

    Questions and answers are written and read beside the event loop, one of a resource at a time. A long list is asked
    for in parts: an answer is bounded in bytes, and has to be in memory.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._client = WebhookClient()

    async def close(self) -> None:
        """Closes connections."""
        await self._client.close()

    async def convert(self, kind: Kind, objects: Sequence[CustomObject]) -> list[CustomObject]:
        """Objects in the version of a kind, in the same order."""
        wanted = kind.api_version
        others = [one for one in objects if one.api_version != wanted]
        if not others or not isinstance(kind, CustomKind):
            return list(objects)
        made = iter(await self._ask(kind, others))
        return [next(made) if one.api_version != wanted else one for one in objects]

    async def records(self, kind: Kind, records: Sequence[Record]) -> list[Record]:
        """Records as a version shows them."""
        shown: list[Record] = []
        for part in in_parts(records, attrgetter("size"), MOST_ASKED, MOST_OBJECTS):
            made = await self.convert(kind, [record.obj for record in part])
            shown += await self._engine.workers.run(kind.resource, _showing_all, part, made)
        return shown

    async def events(self, kind: Kind, events: Sequence[Event]) -> list[Event]:
        """Events as a version shows them; what was before is only looked at, and stays as it is stored."""
        made = await self.records(kind, [event.record for event in events])
        return [replace(event, record=record) for event, record in zip(events, made, strict=True)]

    async def _ask(self, kind: CustomKind, objects: Sequence[CustomObject]) -> list[CustomObject]:
        hook = kind.webhook
        assert hook is not None
        config = hook.client_config
        uid, beside = self._engine.new_uid(), self._engine.workers.run
        asked = await beside(
            kind.resource, conversion.question, uid, kind.api_version, objects, hook.conversion_review_versions
        )
        try:
            if config is None:
                raise NoTarget("the definition does not say where it is")
            service = config.service
            target = find_target(
                self._engine,
                WebhookClientConfig(
                    url=config.url,
                    service=None
                    if service is None
                    else ServiceReference(
                        name=service.name, namespace=service.namespace, path=service.path, port=service.port
                    ),
                ),
            )
            told = await self._client.post(target, config.ca_bundle, asked, SECONDS)
            return await beside(kind.resource, _answered, kind, told, uid, objects)
        except (NoTarget, WebhookFailed, ConversionFailed) as error:
            raise errors.internal(
                f"conversion webhook for {kind.api_version}, Kind={kind.kind} failed: {error}"
            ) from None


def _answered(kind: CustomKind, told: bytes, uid: str, objects: Sequence[CustomObject]) -> list[CustomObject]:
    """Raises ConversionFailed."""
    return [kind.shown(made) for made in conversion.answer(told, uid, kind.api_version, objects)]


def _showing_all(records: Sequence[Record], made: Sequence[CustomObject]) -> list[Record]:
    return [record if record.obj is obj else _showing(record, obj) for record, obj in zip(records, made, strict=True)]


def _showing(record: Record, obj: CustomObject) -> Record:
    shown, data = finish(obj)(record.revision)
    return Record(record.key, record.revision, record.create_revision, data, shown)
