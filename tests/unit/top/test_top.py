"""`dray top` without a terminal: keys in, screens and questions out."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

import builders
import dray
from dray.api.generated.core import Pod
from dray.api.resource import DeviceTaintRule
from dray.snapshot import Snapshot
from dray.snapshot.device_selection import DeviceSelection
from dray.top import screen
from dray.top.asks import Act, Apply, Ask, Describe, Explain, Filter, Preview, Quit
from dray.top.drawing import draw, draw_whole
from dray.top.keys import Keys
from dray.top.model import Top
from dray.top.seen import Seen
from dray.views import fleet, service, waiting
from dray.views.grouping import Picked
from dray.views.pools import bad_pools, tell_bad_pools
from snapshot_objects import DRIVER, claim, device, device_class, held, pod, resource_slice, rule

NOW = "2026-06-01T12:00:00Z"
WAITER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "waiter", "namespace": "default", "uid": "waiter"},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}


def _node(name: str) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def _snapshot(nodes: int = 3) -> Snapshot:
    gpus = [device(f"gpu-{number}") for number in range(4)]
    return dray.load(
        *(_node(f"node-{number}") for number in range(1, nodes + 1)),
        *(resource_slice(f"node-{number}", *gpus) for number in range(1, nodes + 1)),
        device_class(),
        held(claim("train"), "node-1", "gpu-0", "gpu-1", pods=("trainer",)),
        pod("trainer"),
        WAITER,
        rule("bad", "NoExecute", device="gpu-1"),
    )


def _seen(snapshot: Snapshot) -> Seen:
    rows = fleet.look_at(snapshot)
    found = tuple(rows.rows.values())
    pods = [one for one in snapshot.objects(Pod) if isinstance(one, Pod)]
    rules = [one for one in snapshot.objects(DeviceTaintRule) if isinstance(one, DeviceTaintRule)]
    return Seen(
        server="https://cluster",
        now=NOW,
        totals=fleet.totals(found),
        ready=3,
        nodes=3,
        rows=found,
        pods=tuple(waiting.pod_rows(pods)),
        problems=tuple(tell_bad_pools(bad_pools(rows.views.values()))),
        rules=tuple(service.rule_rows(rules, lambda _name: service.Reach(3, 1))),
        details=rows.devices,
    )


@pytest.fixture
def top() -> Top:
    made = Top()
    made.see(_seen(_snapshot()))
    return made


def _lines(top: Top, width: int = 80, height: int = 24) -> list[str]:
    drawn = draw(top, width, height)
    assert len(drawn) == height
    found = [screen.text_of(one) for one in drawn]
    assert all(screen.cells(one) <= width for one in found)
    return found


def _press(top: Top, *pressed: str) -> list[Ask]:
    """Each key on a screen that was drawn, as for people."""
    asked: list[Ask] = []
    for key in pressed:
        _lines(top)
        asked = top.press(key)
    _lines(top)
    return asked


def _type(top: Top, text: str) -> list[Ask]:
    return _press(top, *text, "enter")


def test_the_map_has_a_symbol_for_each_device(top: Top) -> None:
    lines = _lines(top)
    assert "12 devices: . 8 free  # 2 held  T 3 tainted" in lines[1]
    assert lines[3].split() == [">node-1", "#T..", "node-2", ".T..", "node-3", ".T.."]


def test_a_screen_of_any_size_holds_what_is_drawn(top: Top) -> None:
    for page, width, height in itertools.product("1234", (20, 40, 80, 200), (6, 10, 24, 60)):
        top.press(page)
        _lines(top, width, height)
    assert screen.text_of(draw(top, 10, 3)[0]) == "too small"


def test_arrows_move_and_long_lists_scroll() -> None:
    top = Top()
    top.see(_seen(_snapshot(40)))
    _press(top, "2", "end")
    assert "> node-40  gpu-3" in "\n".join(_lines(top))
    _press(top, "pageup", "home", "down", "down")
    assert next(line for line in _lines(top) if line.startswith(">")).split()[1:3] == ["node-1", "gpu-2"]


def test_the_cursor_stays_on_its_device_when_others_come(top: Top) -> None:
    _press(top, "2", "down", "down", "down", "down")
    assert getattr(top.current(), "id", "") == f"{DRIVER}/node-2/gpu-0"
    rows = top.seen.rows
    top.see(replace(top.seen, rows=(replace(rows[0], node="node-0", key="new"), *rows)))
    assert "> node-2  gpu-0" in "\n".join(_lines(top))


def test_enter_leads_from_a_node_to_its_devices_and_escape_back(top: Top) -> None:
    _press(top, "right", "enter")
    assert [line.split()[:2] for line in _lines(top)[4:8]][1:] == [["node-2", f"gpu-{number}"] for number in (1, 2, 3)]
    assert _press(top, "enter") == [Describe(f"{DRIVER}/node-2/gpu-0", "node-2")]
    top.show("Device", "one\ntwo")
    assert _lines(top)[3:6] == ["Device", "one", "two"]
    _press(top, "escape", "escape")
    assert ">node-2" in _lines(top)[3]


def test_filters_are_cel_for_devices_and_words_for_pods(top: Top) -> None:
    _press(top, "/")
    assert _type(top, "device.driver == 'x'") == [Filter("device.driver == 'x'")]
    top.see(replace(top.seen, picked={top.seen.rows[1].key: Picked("0100")}))
    top.filtered("device.driver == 'x'")
    assert _lines(top)[3].split() == [">node-2", "T"]
    assert len(top.items()) == 1
    assert _press(top, "escape") == [Filter("")]
    _press(top, "3", "/")
    _type(top, "nobody")
    assert "Nothing matches the filter." in "\n".join(_lines(top))
    _press(top, "escape")
    assert "default/waiter" in "\n".join(_lines(top))


def test_a_filter_that_fails_on_devices_says_so(top: Top) -> None:
    why = "no such key: numa; " + "x" * 80
    top.see(replace(top.seen, picked={row.key: Picked("0!0!", why) for row in top.seen.rows}))
    top.filtered("device.driver == 'x'")
    lines = _lines(top)
    assert lines[2].startswith("The filter fails on 6 devices, as it would in a claim: no such key: numa; x")
    assert "Nothing matches the filter." in "\n".join(lines)
    _press(top, "3")
    assert "fails" not in "\n".join(_lines(top))


def test_sorting_goes_through_the_orders_and_turns(top: Top) -> None:
    _press(top, "2", "s", "home")
    states = [line.split()[-3] for line in _lines(top)[4:16]]
    assert states == sorted(states, key=lambda word: ["tainted", "held", "free"].index(word.strip(",")))
    _press(top, "r")
    assert _lines(top)[4].split()[-3] == "free"


def test_a_pod_is_explained(top: Top) -> None:
    assert _press(top, "3", "enter") == [Explain("default/waiter")]
    assert _press(top, "e") == [Explain("default/waiter")]


def test_draining_shows_who_is_hit_before_it_asks(top: Top) -> None:
    (ask,) = _press(top, "2", " ", " ", "d")
    assert isinstance(ask, Preview)
    assert ask.effect == "NoExecute"
    assert ask.selections == tuple(
        DeviceSelection(node="node-1", driver=DRIVER, pool="node-1", device=f"gpu-{number}") for number in (0, 1)
    )
    top.previewed(ask, "1 pod leaves", "abc", 0)
    assert _lines(top)[-1] == "y apply  e with NoSchedule instead  Esc leave it"
    assert _press(top, "x", "Y", "enter") == [], "only y applies"
    assert _press(top, "e") == [Preview(ask.selections, "NoSchedule")]
    assert _press(top, "y") == [Apply(ask.selections, "NoExecute", "abc")]
    top.applied(["bad"])
    assert not top.marked
    assert "> bad" in "\n".join(_lines(top))


def test_what_is_broad_needs_its_number(top: Top) -> None:
    (ask,) = _press(top, "d")
    assert isinstance(ask, Preview)
    assert ask.selections[0] == DeviceSelection(node="node-1", driver=DRIVER, pool="node-1")
    top.previewed(ask, "many leave", "abc", 32)
    assert _press(top, "y") == []
    assert _type(top, "31") == []
    assert "nothing was changed" in _lines(top)[-1]
    _press(top, "y")
    assert _type(top, "32") == [Apply(ask.selections, "NoExecute", "abc")]


def test_rules_are_changed_after_a_yes(top: Top) -> None:
    for key, action in (("x", "stop"), ("u", "undo")):
        _press(top, "4", key)
        assert _lines(top)[-1].endswith("(y)")
        assert _press(top, "n") == []
        assert _press(top, key, "y") == [Act(action, "bad")]
    assert _press(top, "c", "y") == [], "nothing holds it"
    top.see(replace(top.seen, rules=(replace(top.seen.rules[0], held="60 pods"),)))
    assert _press(top, "c", "y") == [Act("confirm", "bad")]
    _press(top, "enter")
    assert "Held: 60 pods" in _lines(top)


def test_what_evicts_nobody_is_not_stopped_unless_it_is_drained(top: Top) -> None:
    calm = replace(top.seen.rules[0], effect="NoSchedule")
    top.see(replace(top.seen, rules=(calm,)))
    assert _press(top, "4", "x") == []
    assert "it evicts nobody" in _lines(top)[-1]
    top.see(replace(top.seen, rules=(replace(calm, drained=True),)))
    assert _press(top, "x", "y") == [Act("stop", "bad")]


@pytest.mark.req("5055-104")
def test_nodes_that_pods_have_to_leave_are_there_and_what_is_held_comes_first(top: Top) -> None:
    held = service.NodeRow(name="sick", taints=("broken:NoExecute",), pods=7, progress="", held="7 pods at once")
    drained = service.NodeRow(
        name="old", taints=("maintenance:NoSchedule",), pods=1, progress="The drain is paused.", held=""
    )
    top.see(replace(top.seen, emptied=(drained, held)))
    _press(top, "4")
    lines = _lines(top)
    (first,) = (number for number, line in enumerate(lines) if line.startswith("> sick"))
    assert "HELD: 7 pods at once" in lines[first]
    assert "1 pod to leave. The drain is" in next(line for line in lines if "old" in line)
    assert "4 Evictions 2" in "".join(lines), "both have pods leave"
    assert _press(top, "c", "y") == [Act("confirm", "sick", is_node=True)]
    assert _press(top, "x", "y") == [Act("stop", "sick", is_node=True)]
    assert _press(top, "u", "y") == [], "dray untaint says with which rights"
    _press(top, "enter")
    assert "Held: 7 pods at once" in _lines(top)
    _press(top, "escape", "s", "home")
    assert _press(top, "down", "c", "y") == [], "nothing holds a drain"
    assert _press(top, "x", "y") == [Act("stop", "old", is_node=True)], "a drain ends, too"


def test_q_ends_it_and_a_filter_may_contain_a_q(top: Top) -> None:
    assert _press(top, "q") == [Quit()]
    assert _press(top, "/", "q") == []
    assert _press(top, "quit") == [Quit()]


def test_nothing_from_a_cluster_moves_the_cursor(top: Top) -> None:
    evil = "a\x1b[2J\nb\u202e"
    row = replace(top.seen.pods[0], name=evil, message=evil, state="pending")
    top.see(replace(top.seen, pods=(row,)))
    top.press("3")
    drawn = draw(top, 80, 24)
    encoded = screen.update((), drawn, colour=True)
    assert "\x1b[2J" not in encoded
    assert "\n" not in encoded
    assert "\u202e" not in encoded
    assert "\\x1b[2J" in "\n".join(map(screen.text_of, drawn))


def test_no_colour_means_no_colour(top: Top) -> None:
    drawn = draw(top, 80, 24)
    assert "\x1b[33m" in screen.update((), drawn, colour=True)
    plain = screen.update((), drawn, colour=False)
    assert not any(f"\x1b[{code}m" in plain for code in range(30, 50))
    assert "\x1b[7m" in plain, "the cursor is told otherwise"


def test_only_lines_that_changed_are_written_again(top: Top) -> None:
    before = draw(top, 80, 24)
    assert screen.update(before, draw(top, 80, 24), colour=True) == ""
    top.press("right")
    after = draw(top, 80, 24)
    assert screen.update(before, after, colour=True).count("\x1b[2K") == 1


def test_once_shows_everything_without_a_cursor() -> None:
    top = Top()
    top.see(_seen(_snapshot(40)))
    top.page = 1
    lines = [screen.text_of(one) for one in draw_whole(top, 80)]
    assert sum("gpu-" in line for line in lines) == 160
    assert not any(line.startswith(">") for line in lines)


def test_wide_and_cut_text_has_the_width_that_it_takes() -> None:
    assert screen.cells("日本") == 4
    assert screen.cells(screen.pad("日本語", 5)) == 5
    assert screen.cut("abcdef", 4) == "abc…"


def test_keys_are_read_however_they_are_cut() -> None:
    keys = Keys()
    assert keys.feed(b"a\x1b[A\x1bOB\x1b[5~\r\x7f\x03") == ["a", "up", "down", "pageup", "enter", "backspace", "quit"]
    assert keys.feed(b"\x1b") == []
    assert keys.is_halfway
    assert keys.feed(b"[") == []
    assert keys.feed(b"1;5C") == ["right"]
    assert keys.feed(b"\x1b") == []
    assert keys.flush() == ["escape"]
    assert keys.feed("é".encode()[:1]) == []
    assert keys.feed("é".encode()[1:]) == ["é"]
    assert keys.feed(b"\x1bq") == ["escape", "q"]


@pytest.mark.parametrize(
    ("missing", "told"), [((), "No devices are published."), (("you may not list",), "Nothing here that you may see.")]
)
def test_who_may_not_see_devices_is_not_told_that_there_are_none(missing: tuple[str, ...], told: str) -> None:
    top = Top()
    top.see(replace(_seen(dray.load(_node("node-1"))), missing=missing))
    assert any(told in screen.text_of(line) for line in draw(top, 80, 24))


def _shared(name: str, driver: str, *devices: dict[str, Any], count: int = 1, **reach: Any) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": count}
    spec = {"driver": driver, "pool": pool, "devices": list(devices), **(reach or {"allNodes": True})}
    return builders.manifest("resource.k8s.io/v1", "ResourceSlice", f"{driver}-{name}", spec=spec)


def _with_pools_of_all_sorts() -> Top:
    made = Top()
    one: dict[str, Any] = {"name": "d-0"}
    two: list[dict[str, Any]] = [{"name": "p-0", "nodeName": "node-2"}, {"name": "p-1", "allNodes": True}]
    made.see(
        _seen(
            dray.load(
                *(_node(f"node-{number}") for number in (1, 2)),
                *(resource_slice(f"node-{number}", device("gpu-0")) for number in (1, 2)),
                _shared("node-1", "nic.example.com", {"name": "nic-0"}, nodeName="node-1"),
                _shared("net", "fpga.example.com", one),
                _shared("lacking", "fpga.example.com", one, count=2),
                _shared("empty", "fpga.example.com", count=3),
                _shared("per", "fpga.example.com", *two, perDeviceNodeSelection=True),
            )
        )
    )
    return made


def test_rows_of_all_drivers_are_told_apart_and_pools_from_nodes() -> None:
    text = "\n".join(_lines(_with_pools_of_all_sorts(), width=120))
    for name in ("node-1 gpu ", "node-1 nic ", "node-2 ", "pool net ", "pool lacking ", "pool empty ", "pool per "):
        assert name in text


def test_pools_that_cannot_be_used_are_named_with_why() -> None:
    top = _with_pools_of_all_sorts()
    lacking, empty = (
        f"Pool fpga.example.com/{name} is incomplete: 1 of {count} slices of generation 1 are there; "
        "its devices do not count"
        for name, count in (("lacking", 2), ("empty", 3))
    )
    assert sorted(top.seen.problems) == sorted((lacking, empty))
    assert any(f"{top.seen.problems[0]} (and 1 more pool)." in one for one in _lines(top, width=160))
    top.page = 2
    assert not any("incomplete" in one for one in _lines(top, width=160))
    top.page = 0
    told = [screen.text_of(one) for one in draw_whole(top, 80)]
    assert {f"{lacking}.", f"{empty}."} <= set(told)


def test_devices_say_from_where_they_can_be_used_and_a_pool_leads_to_its_own() -> None:
    top = _with_pools_of_all_sorts()
    _press(top, *(["right"] * [row.pool for row in top.items()].index("per")), "enter")
    rows = [line.lstrip("> ").split()[:2] for line in _lines(top) if "/p-" in line]
    assert rows == [["node-2", "per/p-0"], ["(all)", "per/p-1"]]
    assert not any("gpu-0" in line or "d-0" in line for line in _lines(top)), "those of other pools"
    assert any("of pool per" in line for line in _lines(top))
