"""Reports: one file that asks for nothing, with everything escaped; pictures that show what there is."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
import zlib
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

import builders
import dray
from dray.reports import documents, fleet_map, html, png, svg
from dray.reports.fleet_map import Block
from dray.reports.letters import HEIGHT, WIDTH, rows_of
from dray.reports.shapes import FILLS, PAPER, Picture, Rect, Stroke, Text
from dray.scale_up.answer import GroupAnswer, ScaleUpPlan, Unplaced
from dray.snapshot import Snapshot
from dray.views.grouping import GroupingError
from dray.what_if.difference import compare
from snapshot_objects import DRIVER, claim, device_class, held, node, pod, resource_slice, rule

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
EVIL = "<img src=x onerror=alert(1)>&\"'"


@pytest.fixture
def snapshot() -> Snapshot:
    gpus = [builders.device(f"gpu-{number}", {"model": EVIL if number else "plain"}) for number in range(4)]
    return dray.load(
        node("node-2", labels={"zone": "a"}),
        node("node-10", labels={"zone": "b"}),
        resource_slice("node-2", *gpus),
        resource_slice("node-10", *gpus),
        device_class(),
        held(claim("train"), "node-2", "gpu-0", "gpu-1", pods=("trainer",)),
        pod("trainer", "node-2"),
        rule("bad", "NoSchedule", device="gpu-3"),
    )


class _Page(HTMLParser):
    """What a browser would make of it: elements with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def _check(text: str) -> _Page:
    """Nothing is asked for, nothing runs."""
    page = _Page(text)
    tags = {tag for tag, _ in page.elements}
    assert tags.isdisjoint({"script", "img", "iframe", "link", "object", "embed", "form", "a", "base"})
    for _, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("href", "src", "style") for name in attributes)
    policy = next(found["content"] for tag, found in page.elements if "http-equiv" in found)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    outside = text.replace("http://www.w3.org/2000/svg", "")
    assert re.search(r"https?://|//\w|url\(|@import", outside) is None
    return page


def test_a_fleet_is_told_in_numbers_and_in_a_picture(snapshot: Snapshot) -> None:
    fleet = documents.look(snapshot)
    page = _check(html.page(documents.fleet_report(snapshot, fleet, NOW, "dump.yaml")))
    assert "8 devices, 4 free, 2 held, 2 tainted" in page.text
    assert "25 % are held" in page.text
    assert "dump.yaml" in page.text
    assert "example.com/bad:NoSchedule" in page.text
    assert [block.name for block in fleet.blocks] == ["node-2", "node-10"], "in the order that people expect"
    assert fleet.blocks[0].words == ("held", "held", "free", "tainted")


def test_what_came_from_a_cluster_is_text(snapshot: Snapshot) -> None:
    fleet = documents.look(snapshot, f"attribute:{DRIVER}/model")
    assert {block.group for block in fleet.blocks} == {EVIL, "plain"}
    text = html.page(documents.fleet_report(snapshot, fleet, NOW, EVIL))
    assert EVIL in _check(text).text
    drawn = svg.draw(documents.fleet_picture(fleet))
    assert EVIL in "".join(ET.fromstring(drawn).itertext())
    png.draw(documents.fleet_picture(fleet))
    told = replace(ScaleUpPlan(pending=1), unplaced=(Unplaced(EVIL, EVIL),), groups=(GroupAnswer(EVIL, 1, 2, 3.0),))
    assert EVIL in _check(html.page(documents.scale_up_report(fleet, told, NOW, EVIL))).text


def test_a_style_that_its_policy_does_not_know_would_not_count() -> None:
    text = html.page(html.Document("t", "l", (), "m"))
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    assert style[1] == html.STYLE, "the policy has its digest"


def test_a_change_is_shown_before_and_after_with_frames(snapshot: Snapshot) -> None:
    after = snapshot.with_objects(rule("worse", "NoExecute", device="gpu-1"))
    difference = compare(snapshot, after, NOW)
    marked = documents.changed_devices(difference)
    earlier, later = documents.look(snapshot, "", marked), documents.look(after, "", marked)
    page = _check(html.page(documents.what_if_report(earlier, later, difference, "x")))
    assert "DeviceTaintRule worse added. Somebody loses something by it." in page.text
    assert "ml/trainer" in page.text
    assert [one.marked for one in later.blocks] == [frozenset({1}), frozenset({1})]
    assert (earlier.blocks[0].words[1], later.blocks[0].words[1]) == ("held", "tainted")


def test_no_way_to_group_is_made_up(snapshot: Snapshot) -> None:
    with pytest.raises(GroupingError, match="cannot group by 'nonsense'"):
        documents.look(snapshot, "nonsense")
    groups = {block.group for block in documents.look(snapshot, "label:zone").blocks}
    assert groups == {"a", "b"}


def _pixels(data: bytes) -> tuple[int, int, list[bytes], list[bytes]]:
    """Size, palette and rows of a PNG, read by the standard."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(name + body)
        chunks[name] = body
        at += 12 + length
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, kind) == (8, 3)
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == height * (width + 1)
    rows = [raw[line * (width + 1) + 1 : (line + 1) * (width + 1)] for line in range(height)]
    palette = [chunks[b"PLTE"][start : start + 3] for start in range(0, len(chunks[b"PLTE"]), 3)]
    return width, height, palette, rows


def test_a_png_has_the_shapes_where_they_belong() -> None:
    shapes = (Rect(2, 1, 3, 2, "#ff0000"), Stroke(0, 9, 9, 0, "#00ff00"), Text(12, 0, "l", "#0000ff"))
    width, height, palette, rows = _pixels(png.draw(Picture(20, 10, shapes, "")))
    assert (width, height) == (40, 20)

    def at(x: int, y: int) -> str:
        return "#" + palette[rows[2 * y][2 * x]].hex()

    assert [at(2, 1), at(4, 2), at(5, 2), at(2, 3)] == ["#ff0000", "#ff0000", PAPER, PAPER]
    assert [at(0, 9), at(9, 0), at(5, 4)] == ["#00ff00"] * 3
    assert at(14, 3) == "#0000ff"


def test_shapes_outside_of_the_picture_do_not_wrap_around() -> None:
    _, _, palette, rows = _pixels(
        png.draw(Picture(4, 4, (Rect(3, 1, 9, 1, "#ff0000"), Rect(-5, 2, 6, 1, "#ff0000")), ""))
    )
    red = palette.index(bytes.fromhex("ff0000"))
    assert [row.count(red) for row in rows[::2]] == [0, 2, 2, 0]


def test_a_large_fleet_is_a_file_that_one_can_send() -> None:
    words = ("held", "free", "tainted", "blocked", "leaving", "free", "free", "held")
    picture = fleet_map.draw([Block("", f"node-{number}", words) for number in range(5000)], "Fleet")
    drawn = svg.draw(picture)
    assert len(drawn) < 2_000_000
    assert drawn.count(f'fill="{FILLS["held"]}"') == 1
    assert "40000 devices, 15000 free, 10000 held" in picture.told
    assert len(png.draw(picture)) < 200_000


def test_letters_are_all_of_one_size() -> None:
    for letter in "abcdefghijklmnopqrstuvwxyz0123456789-./:_,=()%+… A?":
        rows = rows_of(letter)
        assert len(rows) == HEIGHT
        assert max(rows) < 1 << WIDTH
    assert rows_of("A") == rows_of("a")
    assert rows_of("é") == rows_of("日") != rows_of("e")
