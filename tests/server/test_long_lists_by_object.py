"""Long lists are read and written object by object: a step in C that takes all of one keeps everybody else waiting."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import yaml

from dray.api.generated.core import ConfigMap
from dray.api.meta import ObjectMeta
from dray.api.wire import MAGIC, MEDIA_TYPE
from dray.server.answers import yaml_answers
from dray.server.answers.tables import table
from dray.server.instance import ADMIN, Instance
from dray.server.protobuf import write
from live_server import LiveServer
from patience import PATIENCE
from server_process import server_on_thread

COUNT = 600
SIZE = 4000
PATH = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
YAML = "application/yaml"
AWKWARD = "yes", "1e3", "a: b", "two\nlines", "- x", "", "null", "ü", "'\"", "x" * 200 + " " + "y" * 200


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with server_on_thread(tmp_path_factory.mktemp("server")) as (server, instance):
        asyncio.run_coroutine_threadsafe(_fill(instance), instance._tasks[0].get_loop()).result(PATIENCE)
        yield server


async def _fill(instance: Instance) -> None:
    client = instance.client_of(ADMIN)
    for number in range(COUNT):
        data = {"text": AWKWARD[number % len(AWKWARD)], "filling": "f" * SIZE}
        meta = ObjectMeta(name=f"map-{number:04}", namespace="default")
        await client.create(ConfigMap(kind="ConfigMap", api_version="v1", metadata=meta, data=data))


def watched(function: Callable[..., Any], sizes: list[int]) -> Callable[..., Any]:
    """Notes how many bytes go in or come out in one step."""

    def noting(value: Any, **more: Any) -> Any:
        result = function(value, **more)
        sizes.extend(len(one) for one in (value, result) if isinstance(one, bytes | str))
        return result

    return noting


def test_a_long_list_in_yaml_is_written_object_by_object(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = server.request("GET", PATH).json
    assert len(expected["items"]) >= COUNT
    sizes: list[int] = []
    monkeypatch.setattr(msgspec.json, "decode", watched(msgspec.json.decode, sizes))
    monkeypatch.setattr(yaml, "dump", watched(yaml.dump, sizes))
    answer = server.request("GET", PATH, Accept=YAML)
    assert (answer.code, answer.headers["Content-Type"]) == (200, YAML)
    assert len(answer.body) > COUNT * SIZE
    assert max(sizes) < 3 * SIZE
    monkeypatch.undo()
    assert yaml.load(answer.body, Loader=yaml.CSafeLoader) == expected
    assert answer.body.startswith(b"apiVersion: v1\nitems:\n- data:\n")


def test_yaml_is_compressed_for_who_accepts_that(server: LiveServer) -> None:
    plain = server.request("GET", PATH, Accept=YAML)
    packed = server.request("GET", PATH, Accept=YAML, Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


def test_a_long_list_in_protobuf_is_written_object_by_object(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = server.request("GET", PATH)
    sizes: list[int] = []
    monkeypatch.setattr(msgspec.json, "decode", watched(msgspec.json.decode, sizes))
    monkeypatch.setattr(write, "name_in", watched(write.name_in, sizes))
    answer = server.request("GET", PATH, Accept=MEDIA_TYPE)
    monkeypatch.undo()
    assert (answer.code, answer.headers["Content-Type"]) == (200, MEDIA_TYPE)
    assert max(sizes) < 3 * SIZE
    assert answer.body.startswith(MAGIC)
    assert answer.body == write.from_json(whole.body)


def test_a_long_table_is_written_row_by_row(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{PATH}?includeObject=Object"
    sizes: list[int] = []
    monkeypatch.setattr(table, "_encode", watched(table._encode, sizes))
    rows = server.request("GET", path, Accept=TABLE).json["rows"]
    assert len(rows) >= COUNT
    assert rows[-1]["object"]["metadata"]["name"] == f"map-{COUNT - 1:04}"
    assert max(sizes) < 3 * SIZE


LONG_TEXT = "x" * yaml_answers.LONG


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": 1},
        {"on": [LONG_TEXT, "b"], "a: b": [[LONG_TEXT], []], "z": {"y": [1, 2], "x": None}},
        {"kind": "List", "items": [{"b": LONG_TEXT, "a": []}, {}, [], "no", 1.5]},
        [1, LONG_TEXT],
        LONG_TEXT,
    ],
    ids=["empty", "short", "odd-names", "list", "no-fields", "text"],
)
def test_in_parts_it_is_the_same_text(value: Any) -> None:
    body = msgspec.json.encode(value)
    assert yaml_answers.dump(body) == yaml_answers._written(value)


def test_what_is_nested_too_deeply_stays_json() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    body = msgspec.json.encode({"kind": "List", "items": [{"deep": deep, "filling": LONG_TEXT}, {"a": "b"}]})
    assert yaml_answers.dump(body).startswith(b'items:\n- {"deep":[[[')
