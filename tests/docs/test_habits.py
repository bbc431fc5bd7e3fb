"""The habits that CONTRIBUTING.md asks for, as far as a program can see them."""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "dray"
LONGEST_MODULE = 500
LONGEST_FUNCTION = 60
"""Lines after the parameters."""
MOST_PARAMETERS = 6
"""Without those that must be named."""
MOST_OF_A_NAME = 3
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
SWITCH_OFF = re.compile(r"#\s*(noqa(: [A-Z0-9, ]+)?|type: ignore(\[[a-z, -]+\])?)\s*(?P<why>.*)")
CALLED_BY_OTHERS = re.compile(r"__\w+__|on_\w+|pytest_\w+|writelines")
"""By the interpreter, by httptools, by pytest, by whoever writes to a file."""
NAMED_BY_OTHERS = {"SHARED_CAPACITY_PER_SLICE", "HEIGHT"}
"""A requirement names the one, and no field uses it; tests look at letters of the other."""

NAMES_A_LIMIT = re.compile("timeout|wait_for")
"""What has neither word need not be parsed."""
WITH_LIMIT = {"run", "communicate", "urlopen", "HTTPConnection", "HTTPSConnection", "run_dray"}
"""What takes a `timeout`."""

REMEMBER_OWN_NAMES = {
    "_add_package",
    "_docstring",
    "_fields_of",
    "_fixer",
    "_load",
    "_of_definition",
    "_read",
    "_rules",
    "_rules_of_kind",
    "_zero",
    "by_kind",
    "message_class",
}
"""Remember all that they are asked: names that are in files of ours, for they raise an error for any other."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    path: str
    text: str
    nodes: tuple[ast.AST, ...]


@cache
def modules() -> tuple[Module, ...]:
    """What is written by hand. A million nodes stay: looking for garbage among them takes as long as making them."""
    found = []
    gc.disable()
    for path in sorted(SOURCES.rglob("*.py")):
        if "generated" not in path.parts and "template" not in path.parts:
            text = path.read_text()
            found.append(Module(str(path.relative_to(SOURCES)), text, tuple(ast.walk(ast.parse(text)))))
    gc.freeze()
    gc.enable()
    return tuple(found)


def functions(module: Module) -> Iterator[FunctionNode]:
    return (node for node in module.nodes if isinstance(node, FunctionNode))


def test_modules_are_short() -> None:
    assert [each.path for each in modules() if each.text.count("\n") > LONGEST_MODULE] == []


def test_functions_are_short() -> None:
    long = [
        f"{module.path}: {node.name}"
        for module in modules()
        for node in functions(module)
        if (node.end_lineno or 0) - node.body[0].lineno > LONGEST_FUNCTION
    ]
    assert long == []


def test_functions_have_few_parameters() -> None:
    many = [
        f"{module.path}: {node.name}"
        for module in modules()
        for node in functions(module)
        if len(_parameters(node.args)) > MOST_PARAMETERS
    ]
    assert many == []


def _parameters(arguments: ast.arguments) -> set[str]:
    return {each.arg for each in (*arguments.posonlyargs, *arguments.args)} - {"self", "cls"}


def test_no_class_name_stands_for_many_things() -> None:
    """Types of the API have the names that they have in Kubernetes; those with an underscore are seen in one file."""
    places = defaultdict(list)
    for module in modules():
        if not module.path.startswith("api/"):
            for node in module.nodes:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(module.path)
    assert {name: found for name, found in places.items() if len(found) > MOST_OF_A_NAME} == {}


def test_nothing_is_decided_by_what_a_sentence_says() -> None:
    """As soon as somebody compares or searches English, a type is missing."""
    found = []
    for module in modules():
        for node in module.nodes:
            words: list[ast.expr] = []
            match node:
                case ast.Compare():
                    words = [node.left, *node.comparators]
                case ast.Call(func=ast.Attribute(attr="startswith" | "endswith" | "find" | "index" | "count")):
                    words = node.args
            if any(isinstance(each, ast.Constant) and _is_sentence(each.value) for each in words):
                found.append(f"{module.path}:{node.lineno}")  # type: ignore[attr-defined]  # both have one
    assert found == []


def _is_sentence(value: object) -> bool:
    return isinstance(value, str) and SENTENCE.search(value) is not None


def test_checks_that_are_switched_off_say_why() -> None:
    silent = [
        f"{module.path}:{number}"
        for module in modules()
        for number, line in enumerate(module.text.splitlines(), 1)
        if (found := SWITCH_OFF.search(line)) is not None and not found["why"].strip(" #-")
    ]
    assert silent == []


def test_nothing_that_clients_write_is_remembered_for_ever() -> None:
    """A function that remembers by texts has a bound, or knows the texts."""
    found = {
        node.name
        for module in modules()
        for node in functions(module)
        if any(ast.unparse(one) in ("cache", "functools.cache") for one in node.decorator_list)
        if any("str" in ast.unparse(one.annotation or ast.Constant("")).split() for one in node.args.args)
    }
    assert found == REMEMBER_OWN_NAMES


def test_every_function_is_called() -> None:
    """From somewhere else in the sources, or by users: then a page has its name."""
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    used = set(re.findall(r"\w+", pages))
    for module in modules():
        for node in module.nodes:
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.keyword(arg=str(name)):
                    used.add(name)
                case ast.Constant(value=str(text)) if text.isidentifier():
                    used.add(text)
    dead = [
        f"{module.path}: {node.name}"
        for module in modules()
        for node, is_free in _defined(module)
        if is_free and node.name not in used and not CALLED_BY_OTHERS.fullmatch(node.name)
    ]
    assert dead == []


def test_no_parameter_is_always_the_same() -> None:
    """What all who call give as the same word, number or None, or what none of them gives, is no parameter.

    Looked at are functions whose name is theirs alone and that are only called; tests are callers, too.
    """
    calls: defaultdict[str, list[ast.Call]] = defaultdict(list)
    mentions: Counter[str] = Counter()
    defined: defaultdict[str, list[tuple[str, FunctionNode, bool]]] = defaultdict(list)
    for module in modules():
        for node in module.nodes:
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                    calls[name].append(node)
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    mentions[name] += 1
        methods = {id(each) for node in module.nodes if isinstance(node, ast.ClassDef) for each in node.body}
        for function in functions(module):
            defined[function.name].append((module.path, function, id(function) in methods))
    idle = [
        (path, name, parameter)
        for name, ((path, function, is_method), *others) in defined.items()
        if not others and not function.decorator_list and calls[name] and mentions[name] == len(calls[name])
        for parameter in _always_the_same(function, calls[name], is_method)
    ]
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    assert [each for each in idle if f"{each[1]}(" not in tests] == []


def _always_the_same(function: FunctionNode, calls: list[ast.Call], is_method: bool) -> Iterator[str]:
    """The parameters for which all calls have one and the same constant."""
    if any(isinstance(each, ast.Starred) for call in calls for each in call.args):
        return
    if any(each.arg is None for call in calls for each in call.keywords):
        return
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][is_method:]
    defaults = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
    defaults |= {
        each.arg: value for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
    }
    for name in (*names, *(each.arg for each in arguments.kwonlyargs)):
        given = {
            ast.unparse(value)
            for call in calls
            if (
                value := dict(zip(names, call.args, strict=False)).get(name)
                or next((each.value for each in call.keywords if each.arg == name), defaults.get(name))
            )
        }
        if len(given) == 1 and isinstance(ast.parse(*given, mode="eval").body, ast.Constant):
            yield name


def test_every_constant_is_read() -> None:
    """Somewhere in the sources, or by users: then a page has its name."""
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    read = set(re.findall(r"\w+", pages))
    named: dict[str, str] = {}
    for module in modules():
        for node in module.nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.alias(name=name):
                    read.add(name)
                case ast.Constant(value=str(text)):
                    read.update(re.findall(r"\w+", text))  # types and `__all__` may be written as text
                case ast.Module(body=body):
                    named |= {name: f"{module.path}: {name}" for name in _constants(body)}
    assert [place for name, place in named.items() if name not in read | NAMED_BY_OTHERS] == []


def _constants(body: list[ast.stmt]) -> Iterator[str]:
    """What is given a name at the top of a module."""
    for each in body:
        targets = (
            each.targets if isinstance(each, ast.Assign) else [each.target] if isinstance(each, ast.AnnAssign) else []
        )
        yield from (one.id for one in targets if isinstance(one, ast.Name) and not one.id.startswith("__"))


def _defined(module: Module) -> Iterator[tuple[FunctionNode, bool]]:
    """Every function, and whether only its callers find it: no decorator, and no class of another library above it."""
    for node in module.nodes:
        if isinstance(node, ast.Module | ast.ClassDef):
            bases = node.bases if isinstance(node, ast.ClassDef) else []
            is_own = {ast.unparse(base).partition("[")[0] for base in bases} <= own_classes()
            for each in node.body:
                if isinstance(each, FunctionNode):
                    names = {ast.unparse(decorator) for decorator in each.decorator_list}
                    yield each, is_own and names <= {"property", "staticmethod", "classmethod", "cached_property"}


@cache
def own_classes() -> frozenset[str]:
    """Those that have no class of another library above them; of a name that several have, if that is so of all."""
    bases: defaultdict[str, set[str]] = defaultdict(set)
    for each in modules():
        for node in each.nodes:
            if isinstance(node, ast.ClassDef):
                bases[node.name] |= {ast.unparse(base).partition("[")[0] for base in node.bases}
    found = {*bases, "Protocol", "Generic", "NamedTuple", "ABC", "msgspec.Struct", "Exception", "StrEnum"}
    while others := {name for name in found & bases.keys() if not bases[name] <= found}:
        found -= others
    return frozenset(found)


def test_tests_wait_as_long_as_it_takes() -> None:
    """A limit of some seconds fails on a busy machine: there is one for all of them, in tests/patience.py."""
    limited = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if NAMES_A_LIMIT.search(text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        if any(_is_some_seconds(each) for each in _limits(node))
    ]
    assert limited == []


def _limits(call: ast.Call) -> list[ast.expr]:
    match call.func:
        case ast.Attribute(attr="timeout" | "wait_for") | ast.Name(id="timeout" | "wait_for"):
            return call.args[-1:]
        case ast.Attribute(attr=name) | ast.Name(id=name) if name in WITH_LIMIT:
            return [each.value for each in call.keywords if each.arg == "timeout"]
    return []


def _is_some_seconds(limit: ast.expr) -> bool:
    value = limit.value if isinstance(limit, ast.Constant) else None
    return isinstance(value, int | float) and 1 <= value < PATIENCE
