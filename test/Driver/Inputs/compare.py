"""Compares the table of several plans with the reports of each of them, compiled alone.

    compare.py STAGEC FILE [--job=NAME,NAME...] -D NAME=VALUE,VALUE...

Also sees that one thread and several print the same.
"""

import csv
import io
import itertools
import json
import subprocess
import sys

stagec, file, *rest = sys.argv[1:]
job = [option for option in rest if option.startswith("--job=")]
jobs = [[name] for option in job for name in option[len("--job="):].split(",")] or [[]]
choices = [rest[i + 1] for i, option in enumerate(rest) if option == "-D"]


def run(*options):
    return subprocess.run([stagec, file, *options], capture_output=True, text=True)


def run_table(kind):
    printed = [run(*job, *defines, kind, f"-j{threads}") for threads in (1, 3)]
    assert printed[0].stdout == printed[1].stdout and printed[0].stderr == printed[1].stderr
    return printed[0].stdout


defines = [option for choice in choices for option in ("-D", choice)]
rows = list(csv.DictReader(io.StringIO(run_table("--report=csv"))))
plans = json.loads(run_table("--report=json"))["plans"]
values = [[(name, value) for value in text.split(",")] for name, text in (choice.split("=") for choice in choices)]
combinations = list(itertools.product(jobs, *values))
assert len(rows) == len(plans) == len(combinations)

refused = 0
for row, plan, (names, *combination) in zip(rows, plans, combinations):
    assert not names or names[0] == row["job"] == plan["job"]
    alone = run(*(f"--job={name}" for name in names), *(option for name, value in combination for option in ("-D", f"{name}={value}")),
                "--report=json")
    for name, value in combination:
        given = plan["values"].get(name)  # a number of the JSON, where it is one
        assert name not in row or (row[name] == value and (given == value or float(given) == float(value))), (name, given)
    if alone.returncode != 0:
        refused += 1
        assert row["refused_because"] and row["refused_because"] in alone.stderr
        assert plan["refused"] == row["refused_because"] and not row["ranks"]
        continue
    report = json.loads(alone.stdout)
    del report["traces"]  # tables have none, nor what is found by walking a step again
    for name in ("sensitivities", "least_step_seconds", "most_step_seconds"):
        report.get("time", {}).pop(name, None)
    for stage in report["stages"]:
        del stage["memory"]["moments"]
    assert report == plan["report"]
    stages = report["stages"]
    expected = {
        "ranks": report["ranks"], "microbatches": report["microbatches"], "parameters": report["parameters"],
        "padding": report["padding"], "contraction_flops": report["flops"]["contraction"],
        "attention_flops": report["flops"]["attention"], "model_flops": report["flops"]["model"],
        "other_flops": report["flops"]["other"], "recomputed_flops": report["flops"]["recomputed"],
        "duplicated_flops": sum(report["duplicated_flops"][kind] for kind in ("contraction", "attention", "other", "recomputed")),
        "duplicated_model_flops": report["duplicated_flops"]["model"],
        "rank_flops": max(stage["flops"] for stage in stages) // (report["ranks"] // len(stages)),
        "peak_bytes": max(stage["memory"]["peak"] for stage in stages),
    }
    mesh = list(report["mesh"])
    for column in row:
        if column.startswith("bytes_"):
            axes = column[len("bytes_"):].split("+")
            expected[column] = max(sum(traffic["bytes"] for traffic in stage["communication"]
                                       if sorted(traffic["axes"], key=mesh.index) == axes) for stage in stages)
    for name, value in expected.items():
        assert int(row[name]) == value, (combination, name, row[name], value)
    assert report["peak"] == expected["peak_bytes"] and not row["refused_because"]
    # What travels is in a column, whatever its axes.
    for stage in stages:
        for traffic in stage["communication"]:
            assert "bytes_" + "+".join(sorted(traffic["axes"], key=mesh.index)) in row
print(f"{len(rows)} plans, {refused} refused, all as when compiled alone")
