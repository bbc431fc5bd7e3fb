"""`dray plan` and `dray apply`: review what a command would do, then do exactly that, or nothing."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from dray.cli import live, output
from dray.cli.running_cluster import RunningCluster
from dray.cli.taint_options import Format

if TYPE_CHECKING:
    from dray.client.http import HttpClient
    from dray.what_if.plan import Plan

MANIFESTS: Final = ("rule", "patch", "change")
SCALE_UP: Final = "scale-up"
PLANNED: Final = ("taint", "drain", SCALE_UP, *MANIFESTS)
UNPLANNED: Final = (["drain", "pause"], ["drain", "resume"])
MAX_DIFFERENCES: Final = 20
USAGE: Final = "taint …, drain …, scale-up …, or rule, patch or change with manifests"


class Trial(NamedTuple):
    """How a command went that changed nothing."""

    code: int
    answer: Any
    text: str


def make(
    words: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help=f"What to plan, as it would be typed: {USAGE}.", show_default=False),
    ],
    file: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the plan.")],
    *,
    source: live.Source,
) -> None:
    """Write down what a command would do to the running cluster, or with -f to one in files, without doing it.

    dray apply does it if nothing that matters has changed until then. Options of COMMAND follow it. Exit code 0:
    planned; 1: there is nothing to do, or it does not fit; 2: cannot.
    """
    from dray.snapshot.objects import current_time
    from dray.what_if.plan import Plan, effect_of

    words = [word for word in words if word != "--dry-run"]  # it goes without saying; a plan with it would do nothing
    _make_room(file)
    if not words or words[0] not in PLANNED or words[:2] in UNPLANNED:
        output.fail(f"{' '.join(words[:2])!r} cannot be planned. Give {USAGE}.")
    place, files = source.words(), source.given
    if words[0] == SCALE_UP:
        words, manifests, files = _node_groups(words, source.given)
    else:
        manifests = _manifests(words[1:]) if words[0] in MANIFESTS else []
    with _command(words, () if words[0] == SCALE_UP and files else manifests) as command:
        where = [word for one in files for word in ("-f", one)] or place
        shown = _try([*command, *where])
        if shown.code == output.CANNOT:
            raise typer.Exit(output.CANNOT)
        with contextlib.redirect_stderr(io.StringIO()):  # it would say the same once more
            found = _try([*command, *where, "-o", "json"])
    if found.code == output.CANNOT or found.answer is None:
        raise typer.Exit(found.code or output.CANNOT)
    plan = Plan(
        made=str(current_time()),
        cluster="" if files else live.call(_cluster, "plan", source),
        command=tuple(words),
        manifests=tuple(manifests),
        effect=effect_of(found.answer),
        summary=shown.text,
    )
    _write(file, plan)  # before somebody stops reading what is printed
    print(shown.text.replace("Nothing was changed. Run again without --dry-run to apply.\n", ""), end="")
    print(f"Plan written to {file}; `dray apply {file}` does it if nothing that matters has changed until then.")
    raise typer.Exit(found.code if words[0] == "scale-up" else output.YES)


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A plan that dray plan wrote.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say whether it could be applied.")] = False,
    format_: Format = output.Format.TEXT,
    *,
    cluster: RunningCluster,
) -> None:
    """Do what was planned, if it still does what was reviewed; else say what is different, and change nothing.

    Exit code 0: done; 1: the cluster has moved, or the command says no; 2: cannot.
    """
    from dray.what_if.plan import differences, effect_of

    plan = _read(file)
    if plan.command[0] in MANIFESTS:
        _check_applicable(plan.manifests)
    here = live.call(_cluster, "apply", cluster)
    if plan.cluster and not here:
        output.fail(
            f"cannot tell whether {file} was planned on this cluster: you may not read the namespace kube-system."
        )
    if plan.cluster and here != plan.cluster:
        output.fail(f"{file} was planned on another cluster (kube-system {plan.cluster}, not {here}).")
    with _command(plan.command, plan.manifests) as command, _noted() as notes:
        found = _try([*command, *cluster.words(), "-o", "json"])
        if found.code == output.CANNOT:
            raise typer.Exit(output.CANNOT)
        if not dry_run and not plan.manifests and plan.command[0] != SCALE_UP:
            notes.truncate(0)  # the command says it again when it does it
    moved = list(differences(plan.effect, effect_of(found.answer)))
    if moved:
        print(f"dray: the cluster has moved since {plan.made}; nothing was changed. Plan again.", file=sys.stderr)
        for one in moved[:MAX_DIFFERENCES]:
            print(f"  {one}", file=sys.stderr)
        if len(moved) > MAX_DIFFERENCES:
            print(f"  … and {len(moved) - MAX_DIFFERENCES} more", file=sys.stderr)
        done = Applied(output.NO, is_done=False)
    elif dry_run:
        done = Applied(output.YES, is_done=False, told="Nothing that matters has changed. Nothing was changed.")
    else:
        done = _do(plan, cluster, format_)
    if format_ is output.Format.JSON:
        document = {"applied": done.is_done, "moved": moved, "objects": done.objects, "result": done.result}
        output.print_json(document, "PlanApplication")
    elif done.told:
        print(done.told)
    raise typer.Exit(done.code)


class Applied(NamedTuple):
    """What came of a plan: the objects that were applied, or what its command says of itself."""

    code: int
    is_done: bool
    objects: Sequence[str] = ()
    result: Any = None
    told: str = ""


def _do(plan: Plan, cluster: RunningCluster, format_: output.Format) -> Applied:
    if plan.command[0] == SCALE_UP:
        told = f"{plan.summary}Nobody adds nodes here: do it where your nodes come from."
        return Applied(output.YES, is_done=False, told=told)
    if plan.manifests:
        objects = live.call(lambda client: _apply_all(client, plan.manifests, format_), "apply", cluster)
        return Applied(output.YES, is_done=True, objects=objects)
    reviewed = ["--yes"] if plan.command[1:2] == ("device",) or plan.command[:2] == ("drain", "node") else []
    words = [*plan.command, *reviewed, *cluster.words()]
    if format_ is output.Format.TEXT:
        return Applied(_invoke(words), is_done=True)
    trial = _try([*words, "-o", "json"])
    if trial.code == output.CANNOT:
        raise typer.Exit(output.CANNOT)
    return Applied(trial.code, is_done=True, result=trial.answer)


@contextlib.contextmanager
def _noted() -> Iterator[io.StringIO]:
    """What is said on standard error meanwhile is said at the end, as far as it is left."""
    notes = io.StringIO()
    try:
        with contextlib.redirect_stderr(notes):
            yield notes
    finally:
        print(notes.getvalue(), end="", file=sys.stderr)


async def _apply_all(client: HttpClient, manifests: Sequence[dict[str, Any]], format_: output.Format) -> list[str]:
    """Server-side apply of each, so that what others wrote into the objects stays; what they are. Raises ApiError."""
    from dray.api.registry import by_kind
    from dray.client import PatchFormat

    applied = []
    for one in manifests:
        kind, meta = by_kind(one["apiVersion"], one["kind"]), one["metadata"]
        namespace = meta.get("namespace", "") or ("default" if kind.namespaced else "")
        await client.patch(
            kind, namespace, meta["name"], one, format=PatchFormat.APPLY, field_manager="dray", force=True
        )
        applied.append(f"{one['kind']} {f'{namespace}/' if namespace else ''}{meta['name']}")
        if format_ is output.Format.TEXT:
            print(f"{applied[-1]} applied")
    return applied


@contextlib.contextmanager
def _command(words: Sequence[str], manifests: Sequence[dict[str, Any]]) -> Any:
    """The words that try a command without changing anything; manifests are in a file as long as this lasts."""
    if words[0] not in (SCALE_UP, *MANIFESTS):
        yield [*words, "--dry-run"]
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "manifests.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
        if words[0] == SCALE_UP:
            yield [*words, *(["-f", str(path)] if manifests else [])]
        else:
            yield ["what-if", "--apply", str(path)]


def _node_groups(words: Sequence[str], files: Sequence[str]) -> tuple[list[str], list[dict[str, Any]], list[str]]:
    """The words without files, the node groups, which a plan keeps, and all files if the cluster is in some."""
    from dray.scale_up.node_group_files import is_group
    from dray.snapshot import InputError
    from dray.snapshot import files as sources

    positional = [word for word in words[1:] if not word.startswith("-") and Path(word).exists()]
    paths = [*positional, *files]
    try:
        items = list(sources.read(paths)) if paths else []
    except InputError as error:
        output.fail(str(error))
    groups = [item.value for item in items if is_group(item)]
    return [word for word in words if word not in positional], groups, paths if len(groups) < len(items) else []


def _manifests(files: Sequence[str]) -> list[dict[str, Any]]:
    from dray.snapshot import InputError
    from dray.snapshot import files as sources

    paths = [word for word in files if word not in ("-f", "--file", "--apply")]
    try:
        found = [item.value for item in sources.read(paths)]
    except InputError as error:
        output.fail(str(error))
    if not found or not all(isinstance(one, dict) for one in found):
        where = f" in {', '.join(paths)}" if paths else ""
        output.fail(f"no manifests{where}. Give files right after the command; -f is a cluster to plan for.")
    _check_applicable(found)
    return found


def _check_applicable(manifests: Sequence[dict[str, Any]]) -> None:
    """Ends with exit code 2 if something is among them that cannot be applied by kind and name."""
    from dray.api.registry import UnknownKind, by_kind

    for one in manifests:
        meta = one.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        try:
            by_kind(str(one.get("apiVersion")), str(one.get("kind")))
        except UnknownKind as error:
            output.fail(f"{one.get('kind')} {name or '(no name)'} cannot be applied: {error}")
        if not isinstance(name, str) or not name:
            output.fail(f"{one['kind']} (no name) cannot be applied: give it a metadata.name.")


def _try(words: Sequence[str]) -> Trial:
    """Runs a command that changes nothing, and keeps what it says on standard output."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = _invoke(words)
    text = said.getvalue()
    answer = None
    if words[-2:] == ["-o", "json"]:
        with contextlib.suppress(ValueError):
            answer = json.loads(text)
    return Trial(code, answer, text)


def _invoke(words: Sequence[str]) -> int:
    """A command of this program, in this process; its exit code."""
    from dray.cli.main import app

    try:
        code = app(list(words), prog_name="dray", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else output.CANNOT
    except Exception as error:  # click's own complaints about words, which it would tell by itself
        if not hasattr(error, "format_message"):
            raise
        output.fail(f"{' '.join(words)}: {error.format_message()}")
    return code if isinstance(code, int) else output.YES


async def _cluster(client: HttpClient) -> str:
    """What tells this cluster from others; empty for who may not look."""
    from dray.api.kinds import NAMESPACES
    from dray.api.status import ApiError
    from dray.eviction.stop import PLACE

    try:
        return (await client.get(NAMESPACES, "", PLACE)).metadata.uid
    except ApiError:
        return ""


def _read(file: Path) -> Plan:
    from dray.what_if.plan import PlanError, read_plan

    try:
        return read_plan(file.read_bytes())
    except OSError as error:
        output.fail(f"cannot read {file}: {(error.strerror or str(error)).lower()}.")
    except PlanError as error:
        output.fail(f"{file} {error}.")


def _make_room(file: Path) -> None:
    """Takes an earlier plan away, so that nobody applies it who was to get another one. Nothing else is replaced."""
    from dray.what_if.plan import is_plan

    try:
        data = file.read_bytes() if file.is_file() else b""
        if data and not is_plan(data):
            output.fail(f"{file} is there, and no plan: it stays. Give another name, or take it away.")
        if data:
            file.unlink()
    except OSError as error:
        output.fail(f"cannot write {file}: {(error.strerror or str(error)).lower()}.")


def _write(file: Path, plan: Plan) -> None:
    import msgspec

    try:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(plan.sealed()), indent=1) + b"\n")
    except OSError as error:
        output.fail(f"cannot write {file}: {(error.strerror or str(error)).lower()}.")
