"""Compares how long stages wait: by `--emit=schedule --schedule-times=flops`, which knows units alone, and by
`stage-trace timeline`, which runs the traces node by node, where communication and memory take no time.

    idle.py STAGEC STAGE-TRACE PROGRAM SCHEDULES SCRATCH [OPTION ...]

For each schedule of the file SCHEDULES that can run by itself (none runs it) the program's parameter `pipeline_schedule` is
set to it. Prints a line per schedule and ends with an error where a stage's share of idle time differs by more than 0.1 %
of the step.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

stagec, stage_trace, program, library, scratch, *options = sys.argv[1:]
MOST = 0.1  # per cent of the step


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def list_schedules(text):
    """`interleaved(v = 2)` where a parameter beyond the first three has no default."""
    text = re.sub(r"^ *///.*\n", "", text, flags=re.MULTILINE)  # comments stand between parameters
    found = re.findall(r"^schedule (\w+)\(([^)]*)\)", text, re.MULTILINE)
    for name, parameters in found:
        if re.search(rf"^  {name}\(", text, re.MULTILINE):
            continue  # another one runs it
        missing = [word.strip() for word in parameters.split(",")[3:] if "=" not in word]
        yield name + (f"({', '.join(word + ' = 2' for word in missing)})" if missing else "")


def expand(ranks):
    """`0-1, 4` -> 0, 1, 4"""
    for part in ranks.split(", "):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


schedules = list(list_schedules(Path(library).read_text()))
for schedule in schedules:
    plan = [program, "-D", f"pipeline_schedule={schedule}", *options]
    drawn = [float(share) for share in re.findall(r"^stage \d+ .* idle ([\d.]+) %$",
                                                  run(stagec, *plan, "--emit=schedule", "--schedule-times=flops"), re.MULTILINE)]
    traces = Path(scratch) / "traces"
    shutil.rmtree(traces, ignore_errors=True)
    run(stagec, *plan, "-o", str(traces))
    lines = run(stage_trace, "timeline", str(traces), "--flops=1e15FLOP/s", "--memory=9e18B/s", "--link=9e18B/s").splitlines()
    assert lines[1].split() == ["ranks", "compute", "communication", "exposed", "idle", "idle", "%"], lines[1]
    run_of_rank = {rank: float(line.split()[-1]) for line in lines[2:] for rank in expand(re.split("  +", line)[0])}
    per_stage = len(run_of_rank) // len(drawn)
    assert drawn and per_stage * len(drawn) == len(run_of_rank), (schedule, drawn, run_of_rank)
    for rank, share in run_of_rank.items():
        if abs(share - drawn[rank // per_stage]) > MOST:
            sys.exit(f"{schedule}, rank {rank}: idle {share} % of the time by its trace, {drawn[rank // per_stage]} % by its schedule")
    print(f"{schedule}: idle {min(run_of_rank.values()):.2f} to {max(run_of_rank.values()):.2f} %")
print(f"{len(schedules)} schedules agree")
