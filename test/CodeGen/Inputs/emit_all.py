"""Writes the traces of the jobs of all programs in the tests, as they stand there, and verifies them.

    emit_all.py STAGEC STAGE-TRACE FOLDER SCRATCH [--most-nodes N] [--part K/N]

A program is a `.stg` file, or such a part of a test that `split-file` takes apart. A table of its jobs says which compile,
and how many ranks and microbatches each has; where the product is above `--most`, or traces have more than 64 MiB, the job is left
out, and said. `--part 1/4` takes every fourth program. Prints how many jobs hold.
"""

import argparse
import csv
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("stagec")
parser.add_argument("stage_trace")
parser.add_argument("folder", type=Path)
parser.add_argument("scratch", type=Path)
parser.add_argument("--most", type=int, default=1024)
parser.add_argument("--part", default="1/1")
options = parser.parse_args()

MOST_BYTES = 64 << 20
PART = re.compile(r"^(?://|#)--- (\S+)$", re.MULTILINE)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done


def list_programs():
    """Each program with the name under which faults are said."""
    for path in sorted([*options.folder.rglob("*.stg"), *options.folder.rglob("*.test")]):
        _, *parts = PART.split(path.read_text(errors="replace"))
        if not parts and path.suffix == ".stg":
            yield path, str(path.relative_to(options.folder))
        folder = options.scratch / "parts" / path.relative_to(options.folder)
        for name, text in zip(parts[::2], parts[1::2]):
            part = folder / name
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text.lstrip("\n"))
        for name in parts[::2]:
            if name.endswith(".stg"):
                yield folder / name, f"{path.relative_to(options.folder)}, {name}"


def list_jobs(path):
    """Names of the jobs that compile as they stand, each with its ranks times its microbatches."""
    table = run(options.stagec, str(path), "--all-jobs", "--report=csv").stdout
    for row in csv.DictReader(io.StringIO(table)):
        if not row["refused_because"]:
            yield row["job"], int(row["ranks"]) * int(row["microbatches"])


wanted, parts = map(int, options.part.split("/"))
held, faults, large, refused = 0, [], [], []
traces = options.scratch / "traces"
for number, (path, name) in enumerate(list_programs()):
    if number % parts != wanted - 1 or not re.search(r"^\s*job \w", path.read_text(errors="replace"), re.MULTILINE):
        continue
    for job, size in list_jobs(path):
        if size > options.most:
            large.append(f"{name}, job {job}: {size} ranks times microbatches")
            continue
        shutil.rmtree(traces, ignore_errors=True)
        written = run(options.stagec, str(path), f"--job={job}", "-o", str(traces))
        if written.returncode:  # a table does not say all for which traces are refused
            refused.append(f"{name}, job {job}: {written.stderr.splitlines()[0]}")
            continue
        written_bytes = sum(file.stat().st_size for file in traces.iterdir())
        if written_bytes > MOST_BYTES:
            large.append(f"{name}, job {job}: {written_bytes} bytes of traces")
            continue
        verified = run(options.stage_trace, "verify", str(traces))
        if verified.returncode:
            faults.append(f"{name}, job {job}: {verified.stderr.strip()}")
        held += not verified.returncode
for what, lines in ("left out", large), ("no traces", refused), ("wrong", faults):
    print("".join(f"{what}: {line}\n" for line in lines), end="")
print(f"{held} jobs hold, {len(faults)} do not, {len(large)} are left out, {len(refused)} have no traces")
sys.exit(1 if faults or not held else 0)
