"""Proves a job and checks conditions on the sizes and axes of the proof: what the job's sizes have in common must be left.

    kept.py stagec file job condition ...

A condition is a Python expression over the names of sizes, of axes with more than one rank, and `microbatches` (where it is made small),
with `/` as the quotient of whole numbers. Without conditions the output is printed.
"""
import re
import subprocess
import sys

stagec, path, job, *conditions = sys.argv[1:]
run = subprocess.run([stagec, path, f"--job={job}", "--prove"], capture_output=True, text=True)
if run.returncode:
    sys.exit(run.stdout + run.stderr)
values = {"microbatches": None}
for name, number in re.findall(r"([\w.]+)=(\d+)", re.search(r"^sizes:.*", run.stdout, re.MULTILINE)[0]):
    values[name.replace(".", "_")] = int(number)
for name, number in re.findall(r"([a-z_]+)(\d+)", re.search(r"^proved on mesh(.*?):", run.stdout, re.MULTILINE)[1]):
    values[name] = int(number)
if found := re.search(r"microbatches \d+ -> (\d+)", run.stdout):
    values["microbatches"] = int(found[1])
for condition in conditions:
    if not eval(condition.replace("/", "//"), {}, values):
        sys.exit(f"{job}: {condition} does not hold\n{run.stdout}")
    print(f"{job}: {condition}")
print(*(line for line in run.stdout.splitlines() if line.startswith("not kept")), sep="\n")
