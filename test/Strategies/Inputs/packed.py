"""Packed products compute and move what separate ones do, but for sums of input gradients.

    packed.py stagec jobs.stg job:sums [job:sums ...]   additions per element of a layer's input and layer that packed products spare
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, program, *jobs = sys.argv[1:]
for entry in jobs:
    job, sums = entry.split(":")
    apart, packed = (json.loads(run([stagec, program, "--job", job, "-D", f"packed={word}", "--report=json"])) for word in ("false", "true"))
    assert apart["parameters"] == packed["parameters"], (job, apart["parameters"], packed["parameters"])
    for kind in ("contraction", "attention"):
        assert apart["flops"][kind] == packed["flops"][kind], (job, kind)
    dims, tp = packed["dims"], packed["mesh"]["tp"]
    elements = dims["microbatch_B"] * dims["S"] * dims["D"] * packed["microbatches"] * dims["L"]
    spared = sum(apart[field]["other"] - packed[field]["other"] for field in ("flops", "duplicated_flops"))
    assert spared == int(sums) * elements * tp, (job, spared, int(sums) * elements * tp)

    def list_traffic(report):
        return [sorted((of["operation"], of["axes"], of["count"], of["moved"]) for of in stage["communication"] if "tp" in of["axes"])
                for stage in report["stages"]]

    # Per step gradients of norms are reduced over tp: they are what they were.
    assert list_traffic(apart) == list_traffic(packed), (job, list_traffic(apart), list_traffic(packed))
print(len(jobs), "jobs compute and move the same")
