"""Proves each job of a program, writes its traces, verifies them, and compares the peak of their lists with the report's.

    try_jobs.py stagec stage-trace jobs.stg scratch-folder job [job ...]; of a job `name+` the peak is not compared

The peak of a pipeline's stage may be one at which something arrives for later units, of which a list does not know yet.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, stage_trace, program, scratch, *jobs = sys.argv[1:]
list_peak = os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs", "list_peak.py")
for job in jobs:
    name, compares = job.rstrip("+"), not job.endswith("+")
    folder, report = os.path.join(scratch, name), os.path.join(scratch, name + ".json")
    assert "proved on mesh" in run([stagec, program, "--job", name, "--verify-each", "--prove"])
    run([stagec, program, "--job", name, "--tracker", "-o", folder])
    assert "finishes with buffered and with waiting sends" in run([stage_trace, "verify", folder])
    with open(report, "w") as file:
        file.write(run([stagec, program, "--job", name, "--report=json"]))
    if compares:
        run([sys.executable, list_peak, stage_trace, folder, report])
print(len(jobs), "jobs proved, verified and tracked")
