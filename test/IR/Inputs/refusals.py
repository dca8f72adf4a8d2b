"""Puts each line of a list into a graph, and checks the first message of stagec-opt.

    refusals.py STAGEC_OPT LIST

A line is `place: text => message`. `head` is before the blocks, `op` is a declaration, `body` is in forward, `file` is all. The message may
leave out what is said behind it.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

GRAPH = """graph G {{
  dim N;
  mesh (a = 2, b = 2);
  bind N = 8;
  {head}
  op double(x: [n]) -> (result: [n] = x[n] * 2);
  {op}
  forward {{
    %x = input : f32[N];
    {body}
    return;
  }}
}}
"""


def main(stagec_opt, cases):
    faults = count = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.sir"
        for line in Path(cases).read_text().splitlines():
            if not line or line.startswith("#"):
                continue
            place, rest = line.split(": ", 1)
            text, wanted = rest.rsplit(" => ", 1)
            parts = {name: text if name == place else "" for name in ("head", "op", "body")}
            path.write_text(text if place == "file" else GRAPH.format(**parts))
            run = subprocess.run([stagec_opt, str(path)], capture_output=True, text=True)
            first = re.search(r":\d+:\d+: error: (.*)", run.stderr)
            count += 1
            if run.returncode != 1 or not first or not first.group(1).startswith(wanted):
                faults += 1
                print(f"{line}\n  but: {first.group(1) if first else f'exit {run.returncode}'}")
    print(f"{count} refusals, {faults} otherwise")


if __name__ == "__main__":
    main(*sys.argv[1:])
