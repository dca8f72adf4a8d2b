"""Mutants that are made by machine: operators, constants and statements of function bodies, changed one at a time.

    a < b    a <= b           true     false            ++x;              ;
    a == b   a != b           0        1                continue;         ;
    a + b    a - b            7        8                f(x);             ;
    a && b   a || b           !a       a                member = value;   ;
    min(..)  max(..)          x += y   x -= y

Each pair is a mutant in both directions, where that makes sense. Nothing is made in comments, strings, preprocessor
lines, asserts, or the part of a function before its body. An operator has blanks on both sides, as clang-format writes
it; an angle bracket of a template has not. In .stg files operators and constants change, statements stay.

The choice depends on the sources and the seed alone. Results are kept in the scratch folder, so that a run that was
stopped goes on, with a mutant that no test has seen so far where it was; a run that comes to its end removes them. A
mutant is known by its function's tokens: a changed function is tried anew.

An entry `same NAME` of utils/mutants/*.mutants silences a mutant that makes no difference, with the reason.
"""

import hashlib
import json
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from source import CLOSING, tokenize

RESULTS, UNBUILT = "made-results.jsonl", "DOES NOT BUILD"
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "+=": "-=", "-=": "+=",
         "&&": "||", "||": "&&"}
WORDS = {"min": "max", "max": "min", "true": "false", "false": "true"}
SKIPPED = {"assert", "static_assert", "llvm_unreachable", "LLVM_DEBUG",
           "reserve", "shrink_to_fit"}  # calls; the last two change nothing but time
KEYWORDS = {"return", "if", "else", "for", "while", "do", "switch", "case", "default", "using", "auto", "const", "throw",
            "goto", "break", "static", "constexpr", "new", "delete", "co_return", "typedef", "namespace", "struct", "class"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^="}


@dataclass
class Made:
    source: object  # Source
    scope: object  # Scope
    first: int  # tokens from here to before `last` are replaced
    last: int
    put: str

    def get_edit(self):
        return find_edit(self.source, self.first, self.last, self.put)

    def get_key(self):
        tokens = " ".join(token.text for token in self.source.tokens[self.scope.first:self.scope.last])
        text = f"{self.source.path.name} {self.scope.name} {tokens} {self.first - self.scope.first} {self.last - self.first} {self.put}"
        return hashlib.sha1(text.encode()).hexdigest()

    def get_statement(self):
        """The tokens around the change, between semicolons and braces, those of a `for` and its header together."""
        def ends(place):
            return self.source.tokens[place].text in (";", "{", "}") and place not in self.source.inner

        first, last = self.first, self.last
        while first > self.scope.first and not ends(first - 1):
            first -= 1
        while last < self.scope.last and not ends(last - 1):
            last += 1
        return first, last

    def __str__(self):
        """The place, and the change as an entry `same` says it."""
        (first, last), source = self.get_statement(), self.source
        blank = " " if source.get_text(self.last - 1, self.last).endswith(" ") else ""
        after = source.get_text(first, self.first) + self.put + blank + source.get_text(self.last, last)
        name = (" " if source.path.suffix == ".stg" else "::").join(self.scope.name)
        return (f"{source.path.name}:{source.get_line(self.first)}: {name}\n"
                f"    find: {source.get_text(first, last).strip()}\n    put: {after.strip()}")


def find_edit(source, first, last, put):
    """An edit without what both sides share, so that equal edits are equal: path, place, tokens before and after."""
    old, new = [token.text for token in source.tokens[first:last]], [token.text for token in tokenize(put)]
    while old and new and old[0] == new[0]:
        first, old, new = first + 1, old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    if not new and old[-1:] == [";"]:  # a dropped statement, with or without its semicolon
        old = old[:-1]
    return source.path, first, tuple(old), tuple(new)


def make_in_function(source, scope):
    """The mutants of one function or declaration, in the order of its tokens."""
    tokens = source.tokens
    is_stg = source.path.suffix == ".stg"
    if scope.body is None or (is_stg and scope.name[0] == "config"):
        return
    place = scope.body + 1
    while place < scope.last:
        token, before, behind = tokens[place], tokens[place - 1], tokens[min(place + 1, len(tokens) - 1)]
        if is_stg and token.text == "require":
            place = find_semicolon(source, place)
            continue
        if token.text in SKIPPED and behind.text == "(":
            place = source.skip(place + 1)
            continue
        if not is_stg and (end := find_dropped(source, place)):
            yield Made(source, scope, place, end, ";")
        has_blanks = before.end < token.begin and token.end < behind.begin
        if token.kind == "sign" and token.text in SWAPS and has_blanks:
            yield Made(source, scope, place, place + 1, SWAPS[token.text])
        elif token.kind == "word" and token.text in WORDS and (token.text in ("true", "false") or behind.text == "("):
            yield Made(source, scope, place, place + 1, WORDS[token.text])
        elif token.kind == "number" and re.fullmatch(r"\d+", token.text):
            number = int(token.text)
            yield Made(source, scope, place, place + 1, str(1 - number if number < 2 else number + 1))
        elif token.text == "!" and token.end == behind.begin:
            yield Made(source, scope, place, place + 2, source.text[behind.begin:behind.end])
        place += 1


def find_semicolon(source, place):
    """The semicolon that ends the statement, on the level of brackets where it stands."""
    while place < len(source.tokens) and source.tokens[place].text != ";" and source.tokens[place].text not in CLOSING:
        place = source.skip(place)
    return place


def find_dropped(source, place):
    """Behind a statement that may be dropped and begins here: a call, an assignment, `continue;`, `++x;`."""
    tokens = source.tokens
    if tokens[place - 1].text not in (";", "{", "}", ")", "else", "do"):
        return None
    end = find_semicolon(source, place)
    if end >= len(tokens) or tokens[end].text != ";" or end == place:
        return None
    first = tokens[place]
    if first.text == "continue" and end == place + 1:
        return end + 1
    tops = []
    at = place
    while at < end:
        tops.append(tokens[at])
        at = source.skip(at)
    words = [token.text for token in tops]
    if set(words) & (KEYWORDS | SKIPPED) or "{" in words:
        return None
    if words[0] in ("++", "--") or words[-1] in ("++", "--"):
        return end + 1
    left = tops[:next((k for k, word in enumerate(words) if word in ASSIGNMENTS), len(tops))]
    # `Type name(x);` and `Type name = x;` declare: two words side by side, or a type's closing bracket or star.
    is_chain = first.kind == "word" and all(
        token.kind == "word" and (k == 0 or left[k - 1].text in (".", "->", "::")) or token.text in (".", "->", "::", "(", "[")
        for k, token in enumerate(left))
    if not is_chain or (len(left) == len(tops) and words[-1] != "("):
        return None
    return end + 1


def get_entry_edit(tree, entry):
    return find_edit(*tree.find_statement(entry.fields["in"], entry.fields["find"]), entry.fields["put"])


def is_made(tree, entry):
    """Whether an entry `same` is a mutant that can be made."""
    source, first, _ = tree.find_statement(entry.fields["in"], entry.fields["find"])
    return any(mutant.get_edit() == get_entry_edit(tree, entry) for scope in source.scopes
               if scope.first <= first < scope.last for mutant in make_in_function(source, scope))


def list_changed_lines(root, revision):
    """Path to the lines that differ from a revision; a file that only moved has none."""
    diff = subprocess.run(["git", "-C", root, "diff", "-U0", "--find-renames", "--no-ext-diff", revision, "--"],
                          capture_output=True, text=True)
    if diff.returncode:
        sys.exit(f"check-mutants: --since={revision}: {diff.stderr.strip()}")
    lines, path = {}, None
    for line in diff.stdout.splitlines():
        if match := re.match(r"\+\+\+ (?:b/(.*)|/dev/null)", line):
            path = root / match[1] if match[1] else None
        elif (match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)) and path:
            begin, count = int(match[1]), int(match[2] or 1)
            lines.setdefault(path, set()).update(range(begin, begin + count))
    return lines


def choose(tree, silenced, options):
    """The mutants that the options ask for, in the order of files and lines."""
    names = [Path(name).name for name in options.file or []]
    for name in names:
        if name not in tree.paths:
            sys.exit(f"check-mutants: there is no file {name}; --file takes names without folders")
    changed = list_changed_lines(tree.root, options.since) if options.since else None
    paths = [path for name in sorted(names or tree.paths) for path in tree.paths[name]
             if path.suffix in (".cpp", ".h", ".stg") and (changed is None or path in changed)]
    mutants = []
    for path in paths:
        source = tree.read(path)
        for scope in source.scopes:
            mutants += [mutant for mutant in make_in_function(source, scope)
                        if changed is None or source.get_line(mutant.first) in changed[path]]
    known = {get_entry_edit(tree, entry) for entry in silenced}
    chosen = [mutant for mutant in mutants if mutant.get_edit() not in known]
    print(f"{len(chosen)} mutants can be made, {len(mutants) - len(chosen)} more are known to make no difference", flush=True)
    if options.sample is not None and options.sample < len(chosen):
        places = sorted(random.Random(options.seed).sample(range(len(chosen)), options.sample))
        chosen = [chosen[place] for place in places]
    return chosen


def get_room(path):
    """The folder of lib/ that a file is of: `CodeGen`; of the library, its models."""
    if path.parts[0] == "stdlib":
        return "Models"
    return path.parts[2] if path.parts[:2] == ("include", "stage") else path.parts[1]


def run(mutants, root, folder, open_scratch, check_catchers, failed, stopped):
    """Tries mutants until all are tried or the time is over, and prints the survivors. Whether there are any."""
    kept = folder / RESULTS
    results, passed = {}, {}  # `passed` has the rungs of the ladder that saw nothing, once the tests of the room have not

    def note(key, result):
        (passed if isinstance(result, int) else results)[key] = result

    def keep(key, result):
        note(key, result)
        with kept.open("a") as store:
            store.write(json.dumps([key, result]) + "\n")

    for line in kept.read_text().splitlines() if kept.is_file() else []:
        note(*json.loads(line))
    keys = [mutant.get_key() for mutant in mutants]
    try:
        scratch = open_scratch() if keys else None
        for mutant, key in zip(mutants, keys):
            if key in results:
                continue

            def find_catcher(key=key, room=get_room(mutant.source.path.relative_to(root))):
                if key not in passed:
                    if caught := scratch.run_room(room):
                        return caught
                    keep(key, 0)
                return scratch.climb(passed[key], lambda number: keep(key, number))

            try:
                caught = scratch.try_change(mutant.source, mutant.first, mutant.last, mutant.put, find_catcher)
            except failed:
                caught = UNBUILT
            keep(key, caught)
            word = caught if caught == UNBUILT else f"caught by {caught}" if caught else "SURVIVED"
            print(f"{mutant}\n  {word}", flush=True)
        of_run = {key: results[key] for key in keys if results[key] != UNBUILT}
        bad = check_catchers(scratch, of_run)
        kept.unlink(missing_ok=True)
    except stopped:
        of_run, bad = {key: results[key] for key in keys if results.get(key, UNBUILT) != UNBUILT}, 0
    survivors = [mutant for mutant, key in zip(mutants, keys) if key in of_run and of_run[key] is None]
    if survivors:
        print("Survivors:")
    for mutant in survivors:
        print(mutant)
    tried = sum(key in results for key in keys)
    print(f"{len(of_run) - len(survivors)} caught, {len(survivors)} survived, {tried - len(of_run)} do not build, "
          f"{len(keys) - tried} left")
    return survivors or bad
