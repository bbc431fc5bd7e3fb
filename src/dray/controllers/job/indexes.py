"""Completion indexes of Indexed jobs: written compactly, found on pods, given to pods. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from dray.api.generated.core import EnvVar, EnvVarSource, ObjectFieldSelector, Pod

INDEX = "batch.kubernetes.io/job-completion-index"
VARIABLE = "JOB_COMPLETION_INDEX"
LONGEST_HOSTNAME = 63


def index_of(pod: Pod) -> int | None:
    """The index that a pod works on."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() and len(text) <= 10 else None


def parse(text: str) -> set[int]:
    """Reads `0-2,4`; parts that make no sense are left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if first.isdecimal() and last.isdecimal() and int(last) - int(first) < 10**6:
            found.update(range(int(first), int(last) + 1))
    return found


def render(indexes: Iterable[int]) -> str:
    """Writes `0-2,4`. Two neighbours are written one by one, three or more as a range."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def missing(completions: int, taken: Collection[int]) -> Iterator[int]:
    """The indexes that nobody works on and that are not done, lowest first."""
    return (index for index in range(completions) if index not in taken)


def give(pod: Pod, index: int) -> Pod:
    """The pod for an index: it learns it from a label, an annotation, its hostname and a variable."""
    meta, spec = pod.metadata, pod.spec
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
    variable = EnvVar(name=VARIABLE, value_from=source)
    base = meta.generate_name.removesuffix("-")
    return replace(
        pod,
        metadata=replace(
            meta,
            generate_name=f"{base}-{index}-",
            labels={**meta.labels, INDEX: str(index)},
            annotations={**meta.annotations, INDEX: str(index)},
        ),
        spec=replace(
            spec,
            hostname=spec.hostname or f"{base}-{index}"[:LONGEST_HOSTNAME],
            containers=tuple(
                replace(one, env=(*one.env, variable)) if all(e.name != VARIABLE for e in one.env) else one
                for one in spec.containers
            ),
        ),
    )
