"""Breaks a right graph as real systems did, and checks that each mistake is refused with the message of docs/KnownBugs.md.

    known_bugs.py STAGEC_OPT DOC FILE [--write]
    known_bugs.py --count DOC FILE...

A file is a right graph, which must be proved as it stands. Its mistakes have names, and stand beside the right lines:

    //! NAME = citations | what was wrong         one row of the document
    //! NAME: text                                in the graph with this mistake, in place of the line above; no text: without it
    //! NAME+: text                               one more line

Each graph with one mistake goes through `stagec-opt --prove`, which must refuse it. What it says up to the first number of an element
is the last cell of its row; `--write` puts it there. `--count` fails if the document has rows of other mistakes.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = re.compile(r"\s*//! ([\w-]+)(\+?)( =|:) ?(.*)")


def read(path):
    """The right lines, and name -> (citations, what was wrong); name -> {number of a right line: (its place taken by, more lines)}."""
    right, about, edits = [], {}, {}
    for line in Path(path).read_text().splitlines():
        mark = MARK.fullmatch(line)
        if not mark:
            right.append(line)
            continue
        name, more, kind, text = mark.groups()
        if kind == " =":
            about[name] = [cell.strip() for cell in text.split("|")]
            continue
        edit = edits.setdefault(name, {}).setdefault(len(right) - 1, [None, []])
        if more:
            edit[1].append(text)
        else:
            edit[0] = text
    if set(about) != set(edits):
        sys.exit(f"{path}: mistakes without a place or a citation: {', '.join(sorted(set(about) ^ set(edits)))}")
    return right, about, edits


def break_graph(right, edit):
    lines = []
    for number, line in enumerate(right):
        instead, more = edit.get(number, (None, []))
        lines += ([line] if instead is None else [instead] if instead else []) + more
    return "\n".join(lines) + "\n"


def prove(stagec_opt, text, folder):
    path = Path(folder) / "graph.sir"
    path.write_text(text)
    run = subprocess.run([stagec_opt, str(path), "--prove"], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def get_message(output):
    first = re.search(r": error: (.*) \[([\w-]+)\]$", output, re.MULTILINE)
    return f"{re.sub(r': element .*', '', first.group(1))} [{first.group(2)}]" if first else ""


def make_row(path, name, about, message):
    cells = [about[1], about[0], f"[{Path(path).stem}](../test/Interp/known-bugs/{Path(path).name}): {name}", f"`{message}`"]
    return "| " + " | ".join(cells) + " |"


def is_row_of(line, path, name):
    return f"/{Path(path).name}): {name} |" in line


def check(stagec_opt, document, path, is_written):
    right, about, edits = read(path)
    text = Path(document).read_text() if Path(document).exists() else ""
    faults, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        status, output = prove(stagec_opt, "\n".join(right) + "\n", folder)
        if status or not re.search(r"^proved ", output, re.MULTILINE):
            sys.exit(f"{path}: the right graph is not proved\n{output}")
        for name, cells in about.items():
            status, output = prove(stagec_opt, break_graph(right, edits[name]), folder)
            message = get_message(output)
            if status != 1 or not message:
                faults.append(f"{path}: {name} is not refused\n{output}")
                continue
            rows.append((name, make_row(path, name, cells, message)))
    for name, row in rows:
        old = [line for line in text.splitlines() if is_row_of(line, path, name)]
        if is_written and old:
            text = text.replace(old[0], row)
        elif is_written:
            print(row)
        elif old != [row]:
            faults.append(f"{document} says\n{chr(10).join(old)}\nand should say\n{row}")
    if is_written:
        Path(document).write_text(text)
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(rows)} mistakes refused")


def count(document, paths):
    known = sum(len(read(path)[1]) for path in paths)
    rows = len(re.findall(r"/known-bugs/[\w-]+\.sir\): ", Path(document).read_text()))
    if known != rows:
        sys.exit(f"{document} has {rows} rows, and the tests have {known} mistakes")
    print(f"{rows} mistakes of real systems")


if __name__ == "__main__":
    if sys.argv[1] == "--count":
        count(sys.argv[2], sys.argv[3:])
    else:
        check(*sys.argv[1:4], is_written="--write" in sys.argv[4:])
