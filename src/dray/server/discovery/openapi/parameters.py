"""The parameters that operations take."""

from __future__ import annotations

import msgspec


class Parameter(msgspec.Struct, frozen=True):
    """A part of the path or of the query."""

    name: str
    type: str
    description: str
    place: str = "query"


NAME = Parameter("name", "string", "The name of the object.", "path")
NAMESPACE = Parameter("namespace", "string", "The namespace of the object.", "path")
PRETTY = Parameter("pretty", "string", "Accepted and ignored: answers are always compact.")

_DRY_RUN = Parameter("dryRun", "string", "`All`: check everything and answer as usual, but store nothing.")
_MANAGER = Parameter("fieldManager", "string", "Who makes the change, for managedFields; at most 128 characters.")
_VALIDATION = Parameter(
    "fieldValidation", "string", "What unknown and duplicate fields mean: `Ignore`, `Warn` (the default) or `Strict`."
)
_FORCE = Parameter("force", "boolean", "Take over fields that others manage; only for server-side apply.")

WRITE = (_DRY_RUN, _MANAGER, _VALIDATION)
PATCH = (*WRITE, _FORCE)

DELETE = (
    _DRY_RUN,
    Parameter("gracePeriodSeconds", "integer", "How long the object may take to stop; 0 deletes at once."),
    Parameter("orphanDependents", "boolean", "Deprecated, use propagationPolicy."),
    Parameter("propagationPolicy", "string", "What becomes of dependents: `Orphan`, `Background` or `Foreground`."),
)

SELECTION = (
    Parameter("continue", "string", "The token of the previous page."),
    Parameter("fieldSelector", "string", "Only objects whose fields match, such as `metadata.name=a`."),
    Parameter("labelSelector", "string", "Only objects whose labels match, such as `app=a,tier!=b`."),
    Parameter("limit", "integer", "The largest number of objects in one answer."),
    Parameter("resourceVersion", "string", "The revision to read at, or to watch from."),
    Parameter("resourceVersionMatch", "string", "How resourceVersion is meant: `Exact` or `NotOlderThan`."),
    Parameter("sendInitialEvents", "boolean", "A watch starts with the objects that exist, then a bookmark."),
    Parameter("timeoutSeconds", "integer", "How long to watch."),
)
LIST = (
    Parameter("allowWatchBookmarks", "boolean", "A watch may send BOOKMARK events with the current revision."),
    *SELECTION,
    Parameter("watch", "boolean", "Stream changes instead of a list."),
)
DELETE_COLLECTION = (*DELETE, *SELECTION)
