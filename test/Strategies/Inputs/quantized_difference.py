"""What the second of two jobs of one stage has more than the first: FLOPs, bytes that a rank puts into collectives per step, and bytes of memory per class at the peak.

    quantized_difference.py stagec jobs.stg job other
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run


def measure(stagec, program, job):
    report = json.loads(run([stagec, program, "--job", job, "--report=json"]))
    (stage,) = report["stages"]
    memory = {name: stage["memory"][name] for name in ("activations", "parameters", "optimizer", "gradients")}
    return {"flops": stage["flops"], "communication": sum(of["bytes"] for of in stage["communication"]), **memory}


stagec, program, *jobs = sys.argv[1:]
first, second = (measure(stagec, program, job) for job in jobs)
for name in first:
    print(f"{name} {second[name] - first[name]:+d}")
