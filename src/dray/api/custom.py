"""Objects of kinds that somebody else has defined: typed metadata, and whatever the definition says besides it."""

from __future__ import annotations

from typing import Any

from msgspec import field

from dray.api.meta import Object


class CustomObject(Object):
    """An object of a custom resource, in whatever version. `content` is all but kind, apiVersion and metadata.

    As everywhere, what an object holds is never changed in place.
    """

    content: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The object as JSON has it; the metadata is still a struct."""
        return {"kind": self.kind, "apiVersion": self.api_version, "metadata": self.metadata, **self.content}
