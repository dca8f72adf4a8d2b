"""Compares the model FLOPs of sharded jobs with those of the same model and step on one rank.

    model_flops.py stagec jobs.stg job...

A job `G_one` is what all other jobs named `G_...` are compared with (of several such G, the longest). Its FLOPs come from a program without any
sharding, so that nothing of how the report counts copies is in them. The listed jobs have the same other FLOPs, too: their plans add no ops of their own, as a
loss whose vocabulary is split does.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

CLASSES = ("contraction", "attention", "other", "recomputed")
stagec, program, *adding_nothing = sys.argv[1:]
names = re.findall(r"^job (\w+)", open(program).read(), re.MULTILINE)
plans = json.loads(run([stagec, program, "--job=" + ",".join(names), "--report=json"]))["plans"]
for plan in plans:
    if "refused" in plan:
        sys.exit(f"{plan['job']}: {plan['refused']}")
reports = {plan["job"]: plan["report"] for plan in plans}
groups = [name[:-len("_one")] for name in names if name.endswith("_one")]


def count(report, field):
    return sum(report[field][kind] for kind in CLASSES)


faults, duplicating = [], 0
for name, report in reports.items():
    group = max((group for group in groups if name.startswith(group)), key=len)
    found, expected, duplicated = report["flops"], reports[group + "_one"]["flops"], report["duplicated_flops"]
    for kind in ("contraction", "attention", "model") + ("other",) * (name in adding_nothing):
        if found[kind] != expected[kind]:
            faults.append(f"{name}: {found[kind]} FLOPs of {kind}, on one rank {expected[kind]}")
    executed = sum(stage["flops"] for stage in report["stages"])
    counted = sum(count(report, field) for field in ("flops", "duplicated_flops", "padding_flops"))
    if executed != counted:
        faults.append(f"{name}: ranks execute {executed} FLOPs, {counted} are counted")
    if any(duplicated.values()) if name.endswith("_one") else min(duplicated.values()) < 0:
        faults.append(f"{name}: {duplicated} duplicated")
    duplicating += duplicated["model"] > 0
print(*faults, sep="\n", end="\n" if faults else "")
print(f"{len(reports)} jobs of {len(groups)} groups have the model FLOPs of one rank, {duplicating} duplicate some")
sys.exit(bool(faults))
