"""The report of every job of these programs is one screen: at most 25 lines of at most 110 columns.

    screens.py STAGEC OPTION... -- PROGRAM...
"""

import csv
import io
import re
import subprocess
import sys

stagec, split = sys.argv[1], sys.argv.index("--")
options, programs = sys.argv[2:split], sys.argv[split + 1:]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


screens = 0
for program in programs:
    for row in csv.DictReader(io.StringIO(run(stagec, program, *options, "--all-jobs", "--report=csv").stdout)):
        if row["refused_because"]:
            continue
        job = [program, *options, "--job=" + row["job"]]
        lines = run(stagec, *job, "--report").stdout.splitlines()
        assert 10 <= len(lines) <= 25, (job, len(lines))
        assert max(map(len, lines)) <= 110, (job, max(lines, key=len))
        for what in ("  ranks ", "  parameters ", "  time ", "  memory "):
            assert any(line.startswith(what) for line in lines), (job, what)
        # Three digits: of numbers from ten thousand on there are only those of ranks and of sequences.
        numbers = re.findall(r"(?<![\w,.])\d[\d,]*(?![\w,.])", "\n".join(line for line in lines if not re.match("  (ranks|caches) ", line)))
        assert all(int(number.replace(",", "")) < 10_000 for number in numbers), (job, numbers)
        screens += 1
print("screens:", screens)
