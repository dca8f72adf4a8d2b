"""Traces of one, two and three steps of jobs: verified, n times the counts, and with the peak of the report, which is of one step.

    steps.py stagec stage-trace jobs.stg scratch-folder job [job ...]; of a job `name+` the peak is not compared
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, stage_trace, program, scratch, *jobs = sys.argv[1:]
list_peak = os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs", "list_peak.py")


def flatten(value, path=""):
    """The whole numbers of a tree, by their paths."""
    if isinstance(value, list):
        value = {str(i): part for i, part in enumerate(value)}
    if not isinstance(value, dict):
        return {path: value} if isinstance(value, int) else {}
    return {key: n for name, part in value.items() for key, n in flatten(part, path + "/" + name).items()}


for job in jobs:
    name, compares = job.rstrip("+"), not job.endswith("+")
    report = os.path.join(scratch, name + ".json")
    with open(report, "w") as file:
        file.write(run([stagec, program, "--job", name, "--report=json"]))
    totals = {}
    for steps in (1, 2, 3):
        folder = os.path.join(scratch, f"{name}{steps}")
        run([stagec, program, "--job", name, "--tracker", f"--steps={steps}", "-o", folder])
        assert "finishes with buffered and with waiting sends" in run([stage_trace, "verify", folder])
        totals[steps] = flatten(json.loads(run([stage_trace, "stats", "--json", folder]))["total"])
        for path, number in totals[steps].items():
            if not path.endswith("group_size") and number != steps * totals[1][path]:
                sys.exit(f"{name}, {steps} steps: {path} is {number}, expected {steps} times {totals[1][path]}")
        if compares:
            run([sys.executable, list_peak, stage_trace, folder, report])
        # Foretold to the byte.
        measured = json.loads(run([stagec, program, "--job", name, "--tracker", f"--steps={steps}", "--report=json"]))["traces"]
        files = [os.path.join(folder, entry) for entry in os.listdir(folder) if not entry.startswith(".")]
        assert measured["bytes"] == sum(os.path.getsize(path) for path in files), (name, steps)
        assert measured.get("steps", 1) == steps
print(len(jobs), "jobs of several steps verified and tracked")
