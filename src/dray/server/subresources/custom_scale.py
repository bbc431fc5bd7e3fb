"""`/scale` of a custom resource: the fields that its definition says hold the numbers of replicas."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.custom import CustomObject
from dray.api.generated.autoscaling import Scale, ScaleSpec, ScaleStatus
from dray.api.meta import Object
from dray.custom.definition import Version
from dray.custom.paths import MISSING, look_up, put, steps_of
from dray.server import errors
from dray.server.strategies import View
from dray.server.subresources.scale import API_VERSION, metadata_of, read_any


def view(version: Version) -> View:
    """The scale of objects of a version that has one."""
    paths = version.scale
    assert paths is not None
    wanted, actual = steps_of(paths.spec_replicas_path), steps_of(paths.status_replicas_path)
    selector = steps_of(paths.label_selector_path) if paths.label_selector_path else ()

    def show(obj: CustomObject) -> Scale:
        replicas = look_up(obj.content, wanted)
        if replicas is MISSING:
            said = f"the spec replicas field {paths.spec_replicas_path!r} does not exist"
            raise errors.internal(said)
        text = look_up(obj.content, selector) if selector else ""
        count = look_up(obj.content, actual)
        return Scale(
            kind="Scale",
            api_version=API_VERSION,
            metadata=metadata_of(obj),
            spec=ScaleSpec(replicas=replicas if isinstance(replicas, int) else 0),
            status=ScaleStatus(
                replicas=count if isinstance(count, int) else 0, selector=text if isinstance(text, str) else ""
            ),
        )

    def merge(old: CustomObject, given: Scale) -> Object:
        return replace(old, content=put(old.content, wanted, given.spec.replicas))

    return View(API_VERSION, "Scale", show, read_any, merge)
