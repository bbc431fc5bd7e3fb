"""From tokens to a syntax tree with macros expanded.

Operators are parsed by precedence climbing, so one nesting level costs four Python frames. Nesting is limited
as in Kubernetes: 250 levels, where the right side of an operator is one level more. Positions are those that
Kubernetes reports.
"""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn

from dray.cel import macros, types
from dray.cel.ast import Call, Ident, ListLiteral, Literal, MapEntry, MapLiteral, Node, Select, StructLiteral
from dray.cel.errors import CompileError, Issue, locate
from dray.cel.lexer import Token, tokenize
from dray.cel.literals import LiteralError, parse_bytes, parse_double, parse_int, parse_string, parse_uint

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "Parsed", "parse"]

MAX_DEPTH: Final = 250
MAX_LENGTH: Final = 100_000
"""Longest expression in code points, even a stored one."""

_OR, _AND, _RELATION, _SUM, _PRODUCT = range(5)
_PRECEDENCE: Final = {
    "||": _OR, "&&": _AND,
    "<": _RELATION, "<=": _RELATION, ">": _RELATION, ">=": _RELATION,
    "==": _RELATION, "!=": _RELATION, "in": _RELATION,
    "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT,
}  # fmt: skip
_RESERVED: Final = frozenset(
    {
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
        "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_OPERATORS_OF_OTHER_LANGUAGES: Final = {"and": "&&", "or": "||", "not": "!"}


class Parsed(NamedTuple):
    """The tree of an expression, its height, and where in the text the terms of ``&&`` and ``||`` are."""

    root: Node
    height: int
    spans: dict[int, tuple[int, int]]


def parse(text: str, *, binds: bool = True) -> Parsed:
    """Parse an expression; raises CompileError at the first syntax error. Without ``binds``, cel.bind is no macro."""
    if len(text) > MAX_LENGTH:
        raise CompileError((Issue(f"the expression has more than {MAX_LENGTH} characters", 1, 1),))
    parser = _Parser(text, binds=binds)
    root = parser.expression()
    parser.expect_end()
    return Parsed(root, parser.heights[root.id], parser.spans)


class _Chain(NamedTuple):
    """Terms with one logical operator between them."""

    function: str
    terms: list[Node]
    offsets: list[int]
    """Where the operators are."""
    height: int


class _Parser:
    def __init__(self, text: str, *, binds: bool) -> None:
        self.text = text
        self.binds = binds
        self.tokens = tokenize(text)
        self.position = 0
        self.token = self.tokens[0]
        self.factory = macros.NodeFactory()
        self.heights: dict[int, int] = {}
        self.spans: dict[int, tuple[int, int]] = {}
        self.nesting = 0
        self.right_of_relation = 0
        self.right_of_calculation = 0

    def expression(self) -> Node:
        """``condition ? then : otherwise`` or anything that binds tighter."""
        self._enter()
        node = self.binary(_OR)
        if self.token.kind == "?":
            operator = self._advance()
            then = self.binary(_OR)
            self._expect(":", "':' and the value for a false condition")
            otherwise = self.expression()
            call = Call(self.factory.new_id(), operator.offset, "_?_:_", (node, then, otherwise))
            node = self._grown(call, operator, node, then, otherwise)
        self.nesting -= 1
        return node

    def expect_end(self) -> None:
        if self.token.kind != "end":
            self._unexpected("an operator or the end of the expression")

    def binary(self, floor: int) -> Node:
        """Operators that bind at least as tight as ``floor``."""
        start = self.token.offset
        left = self.unary()
        while True:
            operator = self.token
            precedence = _PRECEDENCE.get(operator.kind)
            if precedence is None or precedence < floor:
                return left
            if precedence in (_OR, _AND):
                left = self._logical(left, start, precedence)
                continue
            self._advance()
            right = self._right_operand(precedence)
            function = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            call = Call(self.factory.new_id(), operator.offset, function, (left, right))
            left = self._grown(call, operator, left, right)

    def unary(self) -> Node:
        """``!`` and ``-``, of which an even number cancels out, before a member expression."""
        operator = self.token
        if operator.kind not in ("!", "-"):
            return self.member()
        if operator.kind == "-" and self._peek().kind in ("int", "float"):
            return self.member()
        count = 0
        while self.token.kind == operator.kind:
            self._advance()
            count += 1
        operand = self.member()
        if count % 2 == 0:
            return operand
        node = Call(self.factory.new_id(), operator.offset, f"{operator.kind}_", (operand,))
        self.heights[node.id] = self.heights[operand.id]
        return node

    def member(self) -> Node:
        """A primary expression followed by any number of selections, calls and indexes."""
        node = self.primary()
        while True:
            token = self.token
            if token.kind == ".":
                node = self._selection(node)
            elif token.kind == "[":
                node = self._index(node)
            elif token.kind == "{" and (name := macros.qualified_name(node)) is not None:
                node = self._struct(name)
            else:
                return node

    def primary(self) -> Node:
        token = self._advance()
        match token.kind:
            case "identifier":
                return self._name(token, "")
            case ".":
                return self._name(self._expect("identifier", "a name"), ".")
            case "(":
                node = self.expression()
                self._expect(")", "')'")
                return node
            case "[":
                return self._list(token)
            case "{":
                return self._map(token)
            case _:
                return self._literal(token)

    def _logical(self, first: Node, start: int, precedence: int) -> Node:
        """A chain of one logical operator, as a balanced tree so that long chains stay shallow."""
        symbol = self.token.kind
        terms = [first]
        operators = []
        self.spans[first.id] = start, self._end_of_last()
        while self.token.kind == symbol:
            operators.append(self._advance())
            start = self.token.offset
            terms.append(self.binary(precedence + 1))
            self.spans[terms[-1].id] = start, self._end_of_last()
        height = max(self.heights[term.id] for term in terms)

        chain = _Chain(f"_{symbol}_", terms, [operator.offset for operator in operators], height)
        return self._balanced(chain, 0, len(operators) - 1)

    def _balanced(self, chain: _Chain, low: int, high: int) -> Node:
        """The tree of the operators from one to another, both among them."""
        middle = (low + high + 1) // 2
        left = chain.terms[middle] if middle == low else self._balanced(chain, low, middle - 1)
        right = chain.terms[middle + 1] if middle == high else self._balanced(chain, middle + 1, high)
        node = Call(self.factory.new_id(), chain.offsets[middle], chain.function, (left, right))
        self.heights[node.id] = chain.height
        return node

    def _right_operand(self, precedence: int) -> Node:
        if precedence == _RELATION:
            self.right_of_relation += 1
            self._check_nesting()
            right = self.binary(precedence + 1)
            self.right_of_relation -= 1
        else:
            self.right_of_calculation += 1
            self._check_nesting()
            right = self.binary(precedence + 1)
            self.right_of_calculation -= 1
        return right

    def _selection(self, operand: Node) -> Node:
        dot = self._advance()
        is_optional = self.token.kind == "?"
        if is_optional:
            self._advance()
        if self.token.kind not in ("identifier", "escaped"):
            self._unexpected("a name after the dot")
        name = self._advance()
        if is_optional:
            field = self._grown(self._string(name.offset, _plain_name(name)), name)
            call = Call(self.factory.new_id(), dot.offset, "_?._", (operand, field))
            return self._grown(call, dot, operand)
        if name.kind == "identifier" and self.token.kind == "(":
            opening, args = self._arguments()
            return self._call(opening, name.text, operand, args)
        node = Select(self.factory.new_id(), dot.offset, operand, _plain_name(name))
        return self._grown(node, dot, operand)

    def _index(self, operand: Node) -> Node:
        bracket = self._advance()
        function = "_[_]"
        if self.token.kind == "?":
            self._advance()
            function = "_[?_]"
        index = self.expression()
        self._expect("]", "']'")
        node = Call(self.factory.new_id(), bracket.offset, function, (operand, index))
        return self._grown(node, bracket, operand, index)

    def _name(self, name: Token, prefix: str) -> Node:
        if name.text in _RESERVED:
            self._fail(f"'{name.text}' is a reserved word", name.offset)
        if self.token.kind == "(":
            opening, args = self._arguments()
            return self._call(opening, prefix + name.text, None, args)
        node = Ident(self.factory.new_id(), name.offset, prefix + name.text)
        self.heights[node.id] = 0
        return node

    def _arguments(self) -> tuple[Token, tuple[Node, ...]]:
        opening = self._advance()
        args = []
        if self.token.kind != ")":
            args.append(self.expression())
            while self.token.kind == ",":
                self._advance()
                args.append(self.expression())
        self._expect(")", "',' or ')'")
        return opening, tuple(args)

    def _call(self, opening: Token, function: str, target: Node | None, args: tuple[Node, ...]) -> Node:
        """A call, or what it stands for if it is a macro."""
        operands = args if target is None else (target, *args)
        try:
            is_macro = self.binds or function != "bind"
            node = macros.expand(self.factory, opening.offset, function, target, args) if is_macro else None
        except macros.MacroError as error:
            self._fail(str(error), error.offset)
        if node is None:
            node = Call(self.factory.new_id(), opening.offset, function, args, target)
        if target is None:
            self.heights[node.id] = max((self.heights[operand.id] for operand in operands), default=0)
            return node
        return self._grown(node, opening, *operands)

    def _list(self, bracket: Token) -> Node:
        elements: list[Node] = []
        optionals = set()
        more = self.token.kind not in ("]", ",")
        while more:
            if self.token.kind == "?":
                self._advance()
                optionals.add(len(elements))
            elements.append(self.expression())
            more = self._more("]")
        self._close("]", not elements)
        node = ListLiteral(self.factory.new_id(), bracket.offset, tuple(elements), frozenset(optionals))
        self.heights[node.id] = max((self.heights[element.id] for element in elements), default=0)
        return node

    def _map(self, brace: Token) -> Node:
        entries: list[MapEntry] = []
        more = self.token.kind not in ("}", ",")
        while more:
            is_optional = self.token.kind == "?"
            if is_optional:
                self._advance()
            key = self.expression()
            self._expect(":", "':' and the value of the key")
            entries.append(MapEntry(key, self.expression(), is_optional=is_optional))
            more = self._more("}")
        self._close("}", not entries)
        node = MapLiteral(self.factory.new_id(), brace.offset, tuple(entries))
        self.heights[node.id] = max(
            (max(self.heights[entry.key.id], self.heights[entry.value.id]) for entry in entries), default=0
        )
        return node

    def _struct(self, name: str) -> Node:
        brace = self._advance()
        names: list[str] = []
        values: list[Node] = []
        optionals: set[int] = set()
        more = self.token.kind not in ("}", ",")
        while more:
            if self.token.kind == "?":
                self._advance()
                optionals.add(len(names))
            if self.token.kind not in ("identifier", "escaped"):
                self._unexpected("a field name")
            names.append(self._advance().text.strip("`"))
            self._expect(":", "':' and the value of the field")
            values.append(self.expression())
            more = self._more("}")
        self._close("}", not values)
        node = StructLiteral(
            self.factory.new_id(), brace.offset, name, tuple(names), tuple(values), frozenset(optionals)
        )
        self.heights[node.id] = max((self.heights[value.id] for value in values), default=0)
        return node

    def _more(self, closing: str) -> bool:
        """After an element: whether a comma and another element follow. A last comma is allowed."""
        if self.token.kind != ",":
            return False
        if self._peek().kind == closing:
            return False
        self._advance()
        return True

    def _close(self, closing: str, is_empty: bool) -> None:
        if self.token.kind == ",":
            self._advance()
        self._expect(closing, f"'{closing}'" if is_empty else f"',' or '{closing}'")

    def _literal(self, token: Token) -> Node:
        try:
            node = self._literal_node(token)
        except LiteralError as error:
            self._fail(str(error), token.offset)
        self.heights[node.id] = 0
        return node

    def _literal_node(self, token: Token) -> Node:
        id = self.factory.new_id()
        match token.kind:
            case "int":
                return Literal(id, token.offset, parse_int(token.text), types.INT)
            case "float":
                return Literal(id, token.offset, parse_double(token.text), types.DOUBLE)
            case "-" if self.token.kind == "int":
                return Literal(id, token.offset, parse_int("-" + self._advance().text), types.INT)
            case "-" if self.token.kind == "float":
                return Literal(id, token.offset, parse_double("-" + self._advance().text), types.DOUBLE)
            case "uint":
                return Literal(id, token.offset, parse_uint(token.text), types.UINT)
            case "string":
                return self._string(token.offset, parse_string(token.text))
            case "bytes":
                return Literal(id, token.offset, parse_bytes(token.text), types.BYTES)
            case "true" | "false":
                return Literal(id, token.offset, token.kind == "true", types.BOOL)
            case "null":
                return Literal(id, token.offset, None, types.NULL)
            case _:
                return self._unexpected("a value", token)

    def _string(self, offset: int, value: str) -> Literal:
        return Literal(self.factory.new_id(), offset, value, types.STRING)

    def _grown(self, node: Node, at: Token, *parts: Node) -> Node:
        """Record that the node stands one level above its parts."""
        height = 1 + max((self.heights[part.id] for part in parts), default=-1)
        if height > MAX_DEPTH:
            self._too_deep(at)
        self.heights[node.id] = height
        return node

    def _enter(self) -> None:
        self.nesting += 1
        self._check_nesting()

    def _check_nesting(self) -> None:
        if self.nesting + max(self.right_of_relation, self.right_of_calculation) > MAX_DEPTH:
            self._too_deep(self.token)

    def _too_deep(self, token: Token) -> NoReturn:
        self._fail(f"the expression is nested too deeply: more than {MAX_DEPTH} levels", token.offset)

    def _advance(self) -> Token:
        token = self.token
        if token.kind not in ("end", "error"):
            self.position += 1
            self.token = self.tokens[self.position]
        return token

    def _end_of_last(self) -> int:
        """Where the token before the current one ends."""
        last = self.tokens[self.position - 1]
        return last.offset + len(last.text)

    def _peek(self) -> Token:
        """The token after the current one."""
        following = min(self.position + 1, len(self.tokens) - 1)
        return self.tokens[following]

    def _expect(self, kind: str, description: str) -> Token:
        if self.token.kind != kind:
            self._unexpected(description)
        return self._advance()

    def _unexpected(self, expected: str, token: Token | None = None) -> NoReturn:
        token = token or self.token
        if token.kind == "error":
            self._fail(f"syntax error: {token.text}", token.offset)
        found = "the end of the expression" if token.kind == "end" else f"'{token.text}'"
        message = f"syntax error: found {found}, expected {expected}"
        if token.text in _OPERATORS_OF_OTHER_LANGUAGES:
            message += f"; did you mean '{_OPERATORS_OF_OTHER_LANGUAGES[token.text]}'?"
        self._fail(message, token.offset)

    def _fail(self, message: str, offset: int) -> NoReturn:
        raise CompileError((Issue(message, *locate(self.text, offset)),))


def _plain_name(name: Token) -> str:
    return name.text[1:-1] if name.kind == "escaped" else name.text
