"""What a client accepts costs little, however much it says (issue 14)."""

from __future__ import annotations

import pytest

from dray.api.wire import MEDIA_TYPE
from dray.process.http import Response
from dray.server.answers import other_forms
from dray.server.answers.accepted import MOST_FORMS, accepted
from dray.server.protobuf import write


def test_the_first_forms_of_many_count() -> None:
    found = accepted("text/html," * 10_000 + "application/json")
    assert len(found) == MOST_FORMS
    assert [one.media for one in accepted("text/html;q=0.1,application/yaml")] == ["application/yaml", "text/html"]


def test_an_answer_is_tried_to_be_written_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody gets an answer, and each try reads it."""
    tried: list[bytes] = []
    name_in = write.name_in

    def noted(body: bytes) -> tuple[str, str]:
        tried.append(body)
        return name_in(body)

    monkeypatch.setattr(write, "name_in", noted)
    answer = Response(403, b'{"kind":"Unheard","apiVersion":"example.com/v1"}')
    assert other_forms.written_now(answer, f"{MEDIA_TYPE}," * 1_500) is answer
    assert 0 < len(tried) <= MOST_FORMS
