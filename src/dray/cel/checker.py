"""Static types: which overloads a call can mean, and what comes of it.

The checker fills in the types and overloads of the tree and rewrites calls of qualified functions such as
``lists.range``. It goes on after an error, so that all errors of an expression are reported at once.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from dray.cel import types
from dray.cel.ast import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from dray.cel.declarations import Function, Overload
from dray.cel.environment import ANY_FIELD, DEVICES, TYPE_NAMES, Environment
from dray.cel.errors import CompileError, Issue, locate
from dray.cel.macros import qualified_name
from dray.cel.types import Kind, Type
from dray.cel.unification import Substitution, assign, assign_all, most_general, substitute

__all__ = ["check"]

_LOGICAL: Final = ("_&&_", "_||_")
_FLEXIBLE: Final = frozenset({Kind.DYN, Kind.ERROR, Kind.NULL, Kind.PARAMETER})


def check(root: Node, text: str, environment: Environment = DEVICES) -> None:
    """Check the tree in place; raises CompileError with every error of the text."""
    checker = _Checker(text, environment)
    checker.check(root)
    if checker.issues:
        raise CompileError(tuple(sorted(checker.issues, key=lambda issue: (issue.line, issue.column))))
    checker.settle()


class _Checker:
    def __init__(self, text: str, environment: Environment) -> None:
        self.text = text
        self.environment = environment
        self.issues: list[Issue] = []
        self.known: Substitution = {}
        self.scopes: list[dict[str, Type]] = []
        self.typed: list[Node] = []
        self.variables = 0

    def settle(self) -> None:
        """Replace the type variables that are still in the tree by what became known of them."""
        for node in self.typed:
            if node.type.has_parameters:
                node.type = substitute(self.known, node.type, free_to_dyn=True)

    def check(self, node: Node) -> None:
        match node:
            case Call():
                self._check_call(node)
            case Literal():
                self._set(node, node.literal_type)
            case Ident():
                self._check_ident(node)
            case Select():
                self._check_select(node)
            case ListLiteral():
                self._check_list(node)
            case MapLiteral():
                self._check_map(node)
            case Comprehension():
                self._check_comprehension(node)
            case StructLiteral():
                self._check_struct(node)

    def _check_ident(self, node: Ident) -> None:
        name = node.name
        if not name.startswith("."):
            for scope in reversed(self.scopes):
                if name in scope:
                    self._set(node, scope[name])
                    return
        name = node.name = name.removeprefix(".")
        found = self._global_type(name)
        if found is None:
            self._undeclared(node, name, [*self.environment.variables, *(n for scope in self.scopes for n in scope)])
            return
        node.is_global = True
        node.denotes = None if name in self.environment.variables else TYPE_NAMES.get(name)
        self._set(node, found)

    def _global_type(self, name: str) -> Type | None:
        if name in self.environment.variables:
            return self.environment.variables[name]
        denoted = TYPE_NAMES.get(name)
        return None if denoted is None else types.type_of(denoted)

    def _check_select(self, node: Select) -> None:
        name = None if node.is_test else qualified_name(node)
        if name is not None and not self._is_local(name.partition(".")[0]):
            name = name.removeprefix(".")
            variable = self.environment.variables.get(name)
            if variable is not None:
                node.variable = name
                self._set(node, variable)
                return
            denoted = TYPE_NAMES.get(name)
            if denoted is not None:
                node.denotes = denoted
                self._set(node, types.type_of(denoted))
                return
        result = self._field_type(node, node.operand, node.field, is_optional=False)
        self._set(node, types.BOOL if node.is_test else result)

    def _is_local(self, name: str) -> bool:
        return any(name in scope for scope in self.scopes)

    def _field_type(self, node: Node, operand: Node, field: str, *, is_optional: bool) -> Type:
        self.check(operand)
        target = substitute(self.known, operand.type)
        if target.is_optional:
            is_optional = True
            target = target.params[0]
        result = types.DYN
        if target.kind is Kind.MAP:
            result = target.params[1]
        elif target.kind is Kind.STRUCT:
            result = self._struct_field(node, target, field)
        elif target.kind is Kind.PARAMETER:
            assign(self.known, types.DYN, target)
        elif target.kind not in (Kind.DYN, Kind.ERROR):
            self._report(node, f"type '{target.text}' does not support field selection")
        return types.optional_of(result) if is_optional else substitute(self.known, result)

    def _struct_field(self, node: Node, struct: Type, field: str) -> Type:
        fields = self.environment.fields(struct.name)
        found = fields.get(field) or fields.get(ANY_FIELD)
        if found is not None:
            return found
        self._report(node, f"undefined field '{field}' of {struct.text}{_suggestion(field, list(fields))}")
        return types.ERROR

    def _check_call(self, node: Call) -> None:
        if node.function == "_?._":
            operand, field = node.args
            self.check(field)
            assert isinstance(field, Literal)
            result = self._field_type(node, operand, field.value, is_optional=True)
            node.overloads = ("select_optional_field",)
            self._set(node, result)
            return
        for arg in node.args:
            self.check(arg)
        if node.target is None:
            node.function = node.function.removeprefix(".")
            declared = self.environment.functions.get(node.function)
        else:
            declared = self._member_function(node, node.target)
        if declared is None:
            self._undeclared(node, node.function, list(self.environment.functions))
            return
        self._resolve(node, declared)

    def _member_function(self, node: Call, target: Node) -> Function | None:
        """The function that a member call means: a qualified name, or else one called on the target."""
        prefix = qualified_name(target)
        if prefix is not None:
            name = f"{prefix}.{node.function}".removeprefix(".")
            declared = self.environment.functions.get(name)
            if declared is not None:
                node.function = name
                node.target = None
                return declared
        self.check(target)
        return self.environment.functions.get(node.function)

    def _resolve(self, node: Call, declared: Function) -> None:
        arg_types = tuple(operand.type for operand in node.operands)
        if declared.name in _LOGICAL:
            self._resolve_logical(node, declared)
            return
        result: Type | None = None
        chosen: list[str] = []
        for candidate in declared.overloads:
            if candidate.is_member != (node.target is not None) or not _may_fit(candidate.params, arg_types):
                continue
            fitting = self._try(candidate, arg_types)
            if fitting is None:
                continue
            chosen.append(candidate.id)
            if result is None:
                result = fitting
            elif not result.is_dyn and fitting != result:
                result = types.DYN
        if result is None:
            self._no_overload(node, declared, arg_types)
            return
        node.overloads = tuple(chosen)
        self._set(node, result)

    def _resolve_logical(self, node: Call, declared: Function) -> None:
        for arg in node.args:
            if not self._assign(arg.type, types.BOOL):
                shown = substitute(self.known, arg.type, free_to_dyn=True)
                self._report(arg, f"expected type 'bool' but found '{shown.text}'")
        node.overloads = (declared.overloads[0].id,)
        self._set(node, types.BOOL)

    def _try(self, candidate: Overload, arg_types: tuple[Type, ...]) -> Type | None:
        """The result type if the arguments fit the signature; what is learned of variables is kept."""
        params, result = candidate.params, candidate.result
        if result.has_parameters or any(param.has_parameters for param in params):
            fresh: Substitution = {}
            params = tuple(self._instantiate(param, fresh) for param in params)
            result = self._instantiate(result, fresh)
        elif not any(arg.has_parameters for arg in arg_types):
            return result if assign_all({}, arg_types, params) else None
        trial = dict(self.known)
        if not assign_all(trial, arg_types, params):
            return None
        self.known = trial
        return substitute(self.known, result)

    def _instantiate(self, declared: Type, fresh: Substitution) -> Type:
        """The type with free variables in the place of its parameters."""
        if declared.kind is Kind.PARAMETER:
            if declared.name not in fresh:
                fresh[declared.name] = self._variable()
            return fresh[declared.name]
        if not declared.has_parameters:
            return declared
        params = tuple(self._instantiate(param, fresh) for param in declared.params)
        return Type(declared.kind, declared.name, params)

    def _check_list(self, node: ListLiteral) -> None:
        element: Type | None = None
        for index, part in enumerate(node.elements):
            self.check(part)
            element = self._join(element, self._entry_type(part, is_optional=index in node.optionals))
        self._set(node, types.list_of(element or self._variable()))

    def _check_map(self, node: MapLiteral) -> None:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            self.check(entry.key)
            key = self._join(key, entry.key.type)
            self.check(entry.value)
            value = self._join(value, self._entry_type(entry.value, is_optional=entry.is_optional))
        self._set(node, types.map_of(key or self._variable(), value or self._variable()))

    def _check_struct(self, node: StructLiteral) -> None:
        node.name = node.name.removeprefix(".")
        fields = self.environment.makes(node.name)
        for value in node.values:
            self.check(value)
        if fields is None:
            self._report(node, f"undeclared reference to '{node.name}': no such type can be created by name")
            return
        struct = Type(Kind.STRUCT, node.name)
        for index, (name, value) in enumerate(zip(node.fields, node.values, strict=True)):
            wanted = self._struct_field(value, struct, name)
            found = self._entry_type(value, is_optional=index in node.optionals)
            if not self._assign(wanted, found):
                self._report(
                    value, f"expected type of field '{name}' is '{wanted.text}' but provided type is '{found.text}'"
                )
        self._set(node, struct)

    def _entry_type(self, node: Node, *, is_optional: bool) -> Type:
        if not is_optional or node.type.is_dyn:
            return node.type
        if node.type.is_optional:
            return node.type.params[0]
        self._report(node, f"expected type 'optional_type({node.type.text})' but found '{node.type.text}'")
        return node.type

    def _join(self, previous: Type | None, current: Type) -> Type:
        """The type of elements of both types; what is not allowed to be mixed is found later."""
        if previous is None:
            return current
        return most_general(previous, current) if self._assign(previous, current) else types.DYN

    def _check_comprehension(self, node: Comprehension) -> None:
        self.check(node.iter_range)
        self.check(node.accu_init)
        first, second = self._iteration_types(node)
        accumulated = node.accu_init.type
        self.scopes.append({node.accu_var: accumulated})
        self.scopes.append({node.iter_var: first})
        if node.iter_var2:
            self.scopes[-1][node.iter_var2] = second
        self.check(node.condition)
        self._require(node.condition, types.BOOL)
        self.check(node.step)
        self._require(node.step, accumulated)
        self.scopes.pop()
        self.check(node.result)
        self.scopes.pop()
        self._set(node, substitute(self.known, node.result.type))

    def _iteration_types(self, node: Comprehension) -> tuple[Type, Type]:
        """The types of the first and second iteration variable."""
        over = substitute(self.known, node.iter_range.type)
        if over.kind is Kind.LIST:
            return (types.INT, over.params[0]) if node.iter_var2 else (over.params[0], over.params[0])
        if over.kind is Kind.MAP:
            return over.params[0], over.params[1]
        if over.kind in (Kind.DYN, Kind.ERROR, Kind.PARAMETER):
            self._assign(types.DYN, over)
            return types.DYN, types.DYN
        self._report(
            node.iter_range,
            f"expression of type '{over.text}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return types.ERROR, types.ERROR

    def _require(self, node: Node, wanted: Type) -> None:
        if not self._assign(wanted, node.type):
            self._report(node, f"expected type '{wanted.text}' but found '{node.type.text}'")

    def _assign(self, left: Type, right: Type) -> bool:
        trial = dict(self.known)
        if not assign(trial, left, right):
            return False
        self.known = trial
        return True

    def _variable(self) -> Type:
        self.variables += 1
        return types.parameter(f"_var{self.variables}")

    def _set(self, node: Node, of: Type) -> None:
        node.type = of
        self.typed.append(node)

    def _no_overload(self, node: Call, declared: Function, arg_types: tuple[Type, ...]) -> None:
        shown = [substitute(self.known, arg, free_to_dyn=True).text for arg in arg_types]
        applied = f"({', '.join(shown)})"
        if node.target is not None:
            applied = f"{shown[0]}.({', '.join(shown[1:])})"
        message = f"found no matching overload for '{declared.name.removeprefix('@')}' applied to '{applied}'"
        other_style = [candidate for candidate in declared.overloads if candidate.is_member is (node.target is None)]
        if any(self._try(candidate, arg_types) is not None for candidate in other_style):
            call = f"{declared.name}(x)" if node.target is not None else f"x.{declared.name}()"
            message += f"; it is called as {call}"
        self._report(node, message)

    def _undeclared(self, node: Node, name: str, candidates: list[str]) -> None:
        self._report(node, f"undeclared reference to '{name}'{_suggestion(name, candidates)}")

    def _report(self, node: Node, message: str) -> None:
        self.issues.append(Issue(message, *locate(self.text, node.offset)))
        self._set(node, types.ERROR)


def _may_fit(params: tuple[Type, ...], args: tuple[Type, ...]) -> bool:
    """Whether the arguments could fit the signature, judging by their outermost types alone."""
    if len(params) != len(args):
        return False
    for param, arg in zip(params, args, strict=True):
        if param.name != arg.name and param.kind not in _FLEXIBLE and arg.kind not in _FLEXIBLE:
            return False
    return True


def _suggestion(name: str, candidates: list[str]) -> str:
    close = get_close_matches(name[:64], [c for c in candidates if c[:1].isalpha()], n=1, cutoff=0.75)
    return f"; did you mean '{close[0]}'?" if close else ""
