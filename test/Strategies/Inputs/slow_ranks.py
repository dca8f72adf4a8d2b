"""Compares the traces of jobs with slow ranks with those of the job without.

    slow_ranks.py stagec stage-trace jobs.stg scratch-folder

Rank r of mesh (pp, edp, ep, tp) = (2, 2, 2, 2) has the factors below. A compute node has so many times the FLOPs and bytes, rounded
up; all others, and all that the report says but the sizes of traces, are the same.
"""
import os
import re
import sys
from fractions import Fraction
from math import ceil

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, stage_trace, program, scratch = sys.argv[1:]


def make(job):
    folder = os.path.join(scratch, job)
    run([stagec, program, "--job", job, "-o", folder])
    assert "ok: 16 ranks" in run([stage_trace, "verify", folder])
    report = run([stagec, program, "--job", job, "--report=full"])
    said = int(re.search(r"trace files .*\(([\d,]+) bytes\)", report).group(1).replace(",", ""))
    assert said == sum(os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder)), said
    report = re.sub(r"(?m)^  (classes|trace files) .*$", "", report)
    return report, [run([stage_trace, "dump", os.path.join(folder, f"workload.{r}.et")]).splitlines() for r in range(16)]


def slow(pp, dp, tp):
    factor = Fraction(7, 2) if (pp, dp) == (1, 3) else Fraction(1)
    return factor * (2 if tp == 1 else 1) * (Fraction(5, 2) if dp == 1 else 1)


def fast(pp, dp, tp):
    return Fraction(1, 2) if pp == 0 else Fraction(1)


reports, traces = {}, {}
for job in ("base", "slow", "fast"):
    reports[job], traces[job] = make(job)
for job, get in (("slow", slow), ("fast", fast)):
    assert reports[job] == reports["base"], job
    speeds, scaled = set(), 0
    for rank, (nodes, plain) in enumerate(zip(traces[job], traces["base"], strict=True)):
        factor = get(rank // 8, rank // 2 % 4, rank % 2)
        speeds.add(factor)
        for node, base in zip(nodes, plain, strict=True):
            if " COMP " in base:
                # A node without FLOPs says one, and does so still.
                base = re.sub(r"\b(other_ops|recomputed_ops|tensor_size|num_ops(?!=1 ))=(\d+)",
                              lambda m: f"{m[1]}={ceil(int(m[2]) * factor)}", base)
                scaled += 1
            assert node == base, (rank, node, base)
    assert scaled
    print(len(traces[job]), "ranks of speeds", ", ".join(f"{float(s):g}" for s in sorted(speeds)))
