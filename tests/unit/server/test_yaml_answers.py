"""Answers in YAML say what the JSON says, however deep it is."""

from __future__ import annotations

import pytest
import yaml

from dray.server.answers.yaml_answers import dump


@pytest.mark.parametrize("depth", [1, 50, 400, 900])
def test_every_depth_that_is_stored_can_be_written(depth: int) -> None:
    body = b'{"x":' + b"[" * depth + b"]" * depth + b"}"
    written = dump(body)
    if depth < 100:
        assert yaml.safe_load(written) == yaml.safe_load(body)
    else:
        assert written == body  # which is YAML
