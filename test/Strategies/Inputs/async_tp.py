"""Asynchronous tensor parallelism moves and computes what the same strategy does without it.

    async_tp.py stagec jobs.stg job [job ...]

Over the tensor axes the bytes that leave a rank are the same; model FLOPs are; others are more by the additions of what is scattered: of
n parts of a sum n - 1 additions per element, which a reduce_scatter does on its way.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, program, *jobs = sys.argv[1:]


def report(job, isOverlapped):
    defines = ["-D", f"strategy.async={'true' if isOverlapped else 'false'}"]
    return json.loads(run([stagec, program, "--job", job, *defines, "--report=json"]))


for job in jobs:
    plain, overlapped = report(job, False), report(job, True)
    added = 0
    for before, after in zip(plain["stages"], overlapped["stages"], strict=True):

        def list_moved(stage):
            moved = {}
            for traffic in stage["communication"]:
                isOverTp = any(axis.startswith("tp") for axis in traffic["axes"])
                isTaken = isOverTp and traffic["operation"] in ("all_gather", "reduce_scatter", "permute")
                key = "tp" if isTaken else (traffic["operation"], *traffic["axes"])
                moved[key] = moved.get(key, 0) + traffic["moved"]
            return moved

        assert list_moved(before) == list_moved(after), (job, list_moved(before), list_moved(after))
        # What n members of a group put in is n blocks of what each gets: all but one are added up there.
        for sign, stage in ((1, before), (-1, after)):
            for traffic in stage["communication"]:
                if traffic["operation"] == "reduce_scatter" and any(axis.startswith("tp") for axis in traffic["axes"]):
                    added += sign * traffic["moved"] // 2 * plain["ranks"] // len(plain["stages"])  # elements of bf16
    flops = [{kind: value for kind, value in of["flops"].items()} for of in (plain, overlapped)]
    for kind in ("contraction", "attention"):
        assert flops[0][kind] == flops[1][kind], (job, kind, flops)
    more = sum(flops[1].get(kind, 0) - flops[0].get(kind, 0) for kind in ("other", "recomputed"))
    assert more == added > 0, (job, more, added)
print(len(jobs), "jobs move and compute the same")
