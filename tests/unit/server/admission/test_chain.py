"""In which order admission plugins and what people have configured refuse a write."""

from __future__ import annotations

from contextlib import nullcontext
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
        verb = "update"
        subresource = ""


class Create(Call):
    """The same as a create."""

    class route(Call.route):  # noqa: N801
        verb = "create"


class OfStatus(Call):
    """The same for the status alone."""

    class route(Call.route):  # noqa: N801
        subresource = "status"


class RefusesWholes(Refuses):
    """Has nothing to say about parts of objects."""

    parts: ClassVar[frozenset[str] | None] = frozenset({""})


class RefusesPods(Refuses):
    """Has nothing to say about slices."""

    kinds: ClassVar[frozenset[str] | None] = frozenset({"Pod"})


class RefusesChanges(Refuses):
    """Has nothing to say about creates."""

    def looks_at(self, kind: str, verb: str, part: str) -> bool:
        return verb != "create" and super().looks_at(kind, verb, part)


@pytest.mark.parametrize(
    ("plugin", "call", "is_asked"),
    [
        (RefusesPods(), Call(), False),
        (RefusesChanges(), Call(), True),
        (RefusesChanges(), Create(), False),
        (Refuses(), Create(), True),
        (Refuses(), OfStatus(), True),
        (RefusesWholes(), Call(), True),
        (RefusesWholes(), OfStatus(), False),
    ],
)
async def test_a_plugin_is_asked_about_what_it_looks_at(plugin: Plugin, call: Call, is_asked: bool) -> None:
    chain = Chain([plugin], cast(Any, Configured(is_idle=True)))
    for _ in range(2):  # as when it is asked for the first time
        with pytest.raises(ApiError) if is_asked else nullcontext():
            await chain.check(cast(Any, None), cast(Any, call), None, None)


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
