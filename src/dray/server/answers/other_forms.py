"""Answers in the form that a client likes more than JSON: the JSON answer, written in another way, YAML or protobuf."""

from __future__ import annotations

from dray.api.wire import MEDIA_TYPE
from dray.process.http import JSON, Response
from dray.process.http.messages import YAML
from dray.server.answers import yaml_answers
from dray.server.answers.accepted import ANY_JSON, accepted
from dray.server.beside import LARGE, Beside
from dray.server.protobuf import tables, write

LONG_YAML = 4 * 1024


async def written(answer: Response, accept: str, workers: Beside, caller: str) -> Response:
    """The same answer in the form that is liked most. A long one is written beside the loop, in turn."""
    size = len(answer.body)
    if size > LARGE or (size > LONG_YAML and YAML in accept):
        return await workers.run(caller, written_now, answer, accept)
    return written_now(answer, accept)


def written_now(answer: Response, accept: str) -> Response:
    """`written` for what is not long. What is no JSON stays as it is, and what has no form in protobuf."""
    if answer.content_type != JSON or not answer.body:
        return answer
    for form in accepted(accept):
        if form.media in ANY_JSON:
            break
        if form.media == YAML:
            return Response(answer.code, yaml_answers.dump(answer.body), YAML, answer.headers)
        if form.media == MEDIA_TYPE and form.shape != "Table" and tables.is_known(*write.name_in(answer.body)):
            return Response(answer.code, write.from_json(answer.body), MEDIA_TYPE, answer.headers)
    return answer
