"""How large an object may become: each manager that applies it adds what it set, and there may be many of them."""

from __future__ import annotations

import pytest

from dray.api.generated.core import ConfigMap
from dray.api.meta import ObjectMeta
from dray.api.status import ApiError
from dray.api.times import Time
from dray.server.objects import MOST_BYTES, finish_ahead


def _object(size: int, *, deleted: bool = False) -> ConfigMap:
    when = Time.parse("2026-01-01T00:00:00Z") if deleted else None
    meta = ObjectMeta(name="c", namespace="default", deletion_timestamp=when)
    return ConfigMap(kind="ConfigMap", api_version="v1", metadata=meta, data={"a": "x" * size})


def test_what_is_too_large_is_not_stored() -> None:
    assert len(finish_ahead(_object(1000))(7)[1]) > 1000
    with pytest.raises(ApiError) as failure:
        finish_ahead(_object(MOST_BYTES))
    assert (failure.value.code, failure.value.reason) == (413, "RequestEntityTooLarge")


def test_what_is_there_already_can_be_deleted() -> None:
    assert finish_ahead(_object(MOST_BYTES, deleted=True))(7)
