"""Finds functions and statements in sources, whatever their layout.

A mutant says where it is by the name of a file without its folder, the name of a function, and a statement:

    in: FillGaps.cpp GapFiller::fill
    find: return cost < best;

Files move between folders, namespaces change and clang-format moves line breaks; all three leave that entry valid.

A source is read as tokens: comments and white space count for nothing, and string literals that stand side by side
are one. A scope is a function or a type in C++, and a declaration in .stg (`strategy megatron`). A scope in C++ is
found by its braces and the tokens in front of them: a name before a parenthesis is a function, `class X` is a type.
Its name may be written with less qualification than it has: `GapFiller::fill` finds `stage::(anonymous)::GapFiller::fill`.
Overloads of a name are one scope together.

Limits: macros are not expanded, preprocessor lines are skipped, and variables, lambdas included, have no scope of
their own: the name of the file alone stands for the whole file.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

FOLDERS = ("lib", "include", "tools", "stdlib")  # where sources of the compiler lie
STG_DECLARATIONS = {"config", "fn", "model", "module", "op", "optimizer", "precision", "schedule", "strategy", "job"}
TYPES, ACCESS = {"class", "struct", "union", "enum"}, {"public", "private", "protected"}
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}

TOKEN = re.compile(r"""
    (?P<blank>\s+|//[^\n]*|/\*.*?\*/|\#(?:\\\n|[^\n])*)
  | (?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<number>\d(?:'?\w|(?<=[eE])[+-](?=\d)|\.(?!\.))*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>\.\.\.?|::|->|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|.)
""", re.VERBOSE | re.DOTALL)


@dataclass
class Token:
    text: str
    kind: str
    begin: int
    end: int


def tokenize(text):
    tokens = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "mark" else "raw"
        if kind == "blank":
            continue
        token = Token(match[0], kind, *match.span())
        last = tokens[-1] if tokens else None
        if kind == "text" and last and last.kind == "text" and last.text[0] == token.text[0] == '"':
            last.text, last.end = last.text[:-1] + token.text[1:], token.end
        else:
            tokens.append(token)
    return tokens


def match_brackets(tokens):
    """From the place of each opening bracket to that of its closing one; and the semicolons in parentheses, of `for`."""
    closing, open_, inner = {}, [], set()
    for place, token in enumerate(tokens):
        if token.text in OPENING:
            open_.append(place)
        elif token.text in CLOSING and open_:
            closing[open_.pop()] = place
        elif token.text == ";" and open_ and tokens[open_[-1]].text == "(":
            inner.add(place)
    return closing, inner


@dataclass
class Scope:
    """A function, a type or a declaration: tokens from `first` to before `last`; a function has its body at `body`."""
    name: tuple
    first: int
    last: int
    body: int | None = None


@dataclass
class Source:
    path: Path
    text: str
    tokens: list = field(init=False)

    def __post_init__(self):
        self.tokens = tokenize(self.text)
        self.closing, self.inner = match_brackets(self.tokens)

    @cached_property
    def scopes(self):
        if self.path.suffix == ".stg":
            return self.find_declarations()
        return self.find_functions() if self.path.suffix in (".cpp", ".h") else []

    def get_line(self, place):
        return self.text.count("\n", 0, self.tokens[place].begin) + 1

    def get_text(self, first, last):
        """These tokens on one line, with a blank where the source has white space or comments."""
        tokens = self.tokens
        return "".join(tokens[k].text + (" " if k + 1 < len(tokens) and tokens[k].end < tokens[k + 1].begin else "")
                       for k in range(first, last))

    def replace(self, first, last, put):
        """The text with these tokens replaced."""
        return self.text[:self.tokens[first].begin] + put + self.text[self.tokens[last - 1].end:]

    def skip(self, place):
        """The place behind the bracket that opens here, or behind this token."""
        return self.closing.get(place, place) + 1

    def find_declarations(self):
        scopes, first, body, place = [], 0, None, 0
        while place < len(self.tokens):
            text, at, place = self.tokens[place].text, place, self.skip(place)
            body = at if text in ("=", "{") and body is None else body
            words = tuple(token.text for token in self.tokens[first:first + 2])
            # `fn f(x) = if x { 1 } else { 2 };` ends at its semicolon.
            if text == ";" or (text == "{" and words[0] != "fn"):
                if words[0] in STG_DECLARATIONS:
                    scopes.append(Scope(words, first, place, body))
                first, body = place, None
        return scopes

    def find_functions(self):
        scopes, outer, first, place = [], [], 0, 0
        while place < len(self.tokens):
            text = self.tokens[place].text
            if text in ("(", "["):
                place = self.skip(place)
                continue
            if text == "{":
                kind, name = self.read_header(first, place)
                name = (outer[-1][1] if outer else ()) + name
                if kind == "function":
                    scopes.append(Scope(name, first, self.skip(place), place))
                if kind in ("function", "value"):
                    place = self.skip(place)
                    first = place if kind == "function" else first
                    continue
                outer.append((kind, name, first))
            elif text == "}" and outer:
                kind, name, begin = outer.pop()
                if kind == "type":
                    scopes.append(Scope(name, begin, place + 1))
            place += 1
            if text in (";", "{", "}") or (text == ":" and self.tokens[place - 2].text in ACCESS):
                first = place
        return scopes

    def read_header(self, first, last):
        """What the brace at `last` opens, a `namespace`, `type`, `function` or `value`, and its name."""
        if first < last and self.tokens[first].text == "template":
            first = self.skip_angles(first + 1)
        tops = []  # without what stands in brackets, but for the brackets that open
        place = first
        while place < last:
            tops.append(place)
            place = self.skip(place)
        words = [self.tokens[place].text for place in tops]
        if "namespace" in words[:2]:
            return "namespace", tuple(word for word in words[words.index("namespace") + 1:] if word != "::")
        if words[:1] == ["extern"] and len(words) == 2:
            return "namespace", ()
        if "operator" in words:
            at = words.index("operator")
            end = next((k for k in range(at + 1, len(words)) if words[k] == "(" and k > at + 1), at + 2)
            return "function", self.get_qualifiers(tops, at) + ("".join(["operator", *words[at + 1:end]]).replace("(", "()"),)
        calls = [k for k, word in enumerate(words) if word == "(" and k and self.tokens[tops[k - 1]].kind == "word"]
        assigned = "=" in words and (not calls or words.index("=") < calls[0])
        if set(words) & TYPES and not calls and not assigned:
            key = max(k for k, word in enumerate(words) if word in TYPES)
            name = next((word for word in words[key + 1:] if word.isidentifier()), None)
            return "type", (name,) if name else ()
        if not calls or assigned:
            return "value", ()
        at = calls[0] - 1
        behind = words[calls[0] + 1:]
        if ":" in behind and (self.tokens[last - 1].kind == "word" or words[-1] == ">"):
            return "value", ()  # of a member, in the list of a constructor
        own = ("~" if at and words[at - 1] == "~" else "") + words[at]
        return "function", self.get_qualifiers(tops, at - (own[0] == "~")) + (own,)

    def get_qualifiers(self, tops, at):
        names = []
        while at >= 2 and self.tokens[tops[at - 1]].text == "::":
            at -= 2
            if self.tokens[tops[at]].text == ">":  # Foo<T>::bar
                while at and self.tokens[tops[at]].text != "<":
                    at -= 1
                at -= 1
            names.insert(0, self.tokens[tops[at]].text)
        return tuple(names)

    def skip_angles(self, place):
        depth = 0
        while place < len(self.tokens):
            depth += {"<": 1, ">": -1}.get(self.tokens[place].text, 0)
            place += 1
            if not depth:
                break
        return place

    def find_text(self, wanted, first, last):
        """Where these tokens stand."""
        texts = [token.text for token in self.tokens[first:last]]
        return [first + k for k in range(len(texts) - len(wanted) + 1) if texts[k:k + len(wanted)] == wanted]


class Problem(Exception):
    """Why a place is not found, and what to write."""


class Tree:
    """The sources of a tree, by name and function."""

    def __init__(self, root):
        self.root, self.sources = root, {}
        self.paths = defaultdict(list)
        for folder in FOLDERS:
            for path in sorted((root / folder).rglob("*")):
                if path.is_file():
                    self.paths[path.name].append(path)

    def read(self, path):
        if path not in self.sources:
            self.sources[path] = Source(path, path.read_text())
        return self.sources[path]

    def find_scope(self, place):
        """The source and the token ranges that `in:` says."""
        name, _, function = place.partition(" ")
        sources = [self.read(path) for path in self.paths.get(name, [])]
        if not sources:
            raise Problem(f"there is no file {name} below {', '.join(FOLDERS)}; if it has a new name, write that")
        if not function:
            if len(sources) > 1:
                raise Problem(f"there are two files {name}; write the function, too, as in `in: {name} FUNCTION`")
            return sources[0], [(0, len(sources[0].tokens))]
        wanted = tuple(function.split() if name.endswith(".stg") else function.split("::"))
        found = [(source, scope) for source in sources for scope in source.scopes if scope.name[-len(wanted):] == wanted]
        if not found:
            raise Problem(f"there is no {function} in {name}; look where its statement went, or drop the entry")
        found = [(source, scope) for source, scope in found
                 if not any(source is other and scope is not around and around.first <= scope.first
                            and scope.last <= around.last for other, around in found)]
        if len({id(source) for source, _ in found}) > 1:
            raise Problem(f"there are two files {name} that have a {function}; write more of its name, "
                          f"as in {' or '.join(sorted({'::'.join(scope.name[-len(wanted) - 1:]) for _, scope in found}))}")
        names = sorted({"::".join(scope.name) for _, scope in found})
        if len(names) > 1:
            raise Problem(f"{function} is the name of several functions in {name}; write one of {', '.join(names)}")
        return found[0][0], [(scope.first, scope.last) for _, scope in found]

    def find_statement(self, place, find):
        """The source that `in:` says, and where it has the tokens of `find:`: the first one, and behind the last one."""
        wanted = [token.text for token in tokenize(find)]
        source, ranges = self.find_scope(place)
        places = [at for first, last in ranges for at in source.find_text(wanted, first, last)]
        if not places:
            raise Problem(f"its statement is gone from {place}; bring `find:` up to date, or drop the entry")
        if len(places) > 1:
            raise Problem(f"its statement stands {len(places)} times in {place}; add the one before it to `find:` and `put:`")
        return source, places[0], places[0] + len(wanted)
