"""In which order admission plugins and what people have configured refuse a write."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest

from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.server.admission.chain import Chain, Plugin


class Refuses(Plugin):
    """Refuses everything."""

    def check(self, *_: Any) -> None:
        raise ApiError(403, "Forbidden", type(self).__name__)


class RefusesLast(Refuses):
    """Refuses everything that others let pass."""

    comes_last: ClassVar[bool] = True


class Configured:
    """A policy that refuses, or that there is none."""

    def __init__(self, *, is_idle: bool) -> None:
        self.hooks = None if is_idle else ()

    async def check(self, *_: Any) -> None:
        raise ApiError(403, "Forbidden", "policy")


class Call:
    """A write of a slice."""

    class route:  # noqa: N801
        kind = by_kind("resource.k8s.io/v1", "ResourceSlice")


@pytest.mark.parametrize(
    ("plugins", "is_idle", "who"),
    [
        ([RefusesLast(), Refuses()], False, "Refuses"),
        ([RefusesLast()], False, "policy"),
        ([RefusesLast()], True, "RefusesLast"),
        ([], False, "policy"),
    ],
)
async def test_a_rule_of_our_own_leaves_the_word_to_the_policies_of_people(
    plugins: list[Plugin], is_idle: bool, who: str
) -> None:
    chain = Chain(plugins, cast(Any, Configured(is_idle=is_idle)))
    with pytest.raises(ApiError, match=f"^{who}$"):
        await chain.check(cast(Any, None), cast(Any, Call()), None, None)
