"""What a report says would be written, against what is written.

    sizes.py stagec jobs.stg scratch-folder
"""
import json
import shutil
import sys
from pathlib import Path

from commands import run

stagec, program, scratch = sys.argv[1:]


def report(arguments):
    return json.loads(run([stagec, program, "--report=json"] + arguments))["traces"]


jobs = """--job=llama
--job=llama -Ddp=8 -Dtp=2 -Dcp=2
--job=llama -Dpp=4 -Ddp=4 -Dtp=4 -Dcp=4
--job=llama -Dpp=2 -DB=600 -DL=2
--job=llama -Dpp=4 -Dtp=2 -DB=1100
--job=all_first -Dpp=2 -DB=150
--job=gpt -Dpp=4 -Dtp=2 -Ddp=2
--job=gpt -Dpp=2 -DB=256 -Ddp=64 -Dtp=2
--job=halves
--job=halves -DB=16 -Dpp=2
--job=chunks -Dtp=2
--job=causal
--job=causal -Dpp=2 -Ddp=8 -Dtp=4
--job=rounds
--job=rounds -Dpp=2
--job=steady
--job=steady -Dpp=2""".splitlines()
checked = 0
for job in jobs:
    for options in "", "--names=none", "--tracker", "--tracker --names=none --order=data":
        arguments = job.split() + options.split()
        expected = report(arguments)
        shutil.rmtree(scratch, ignore_errors=True)
        written = report(arguments + ["-o", scratch])
        files = [file for file in Path(scratch).iterdir() if file.name != ".stagec"]  # the mark
        found = {"written": True, "files": len(files), "bytes": sum(file.stat().st_size for file in files)}
        if expected != written | {"written": False} or written != written | found:
            sys.exit(f"{' '.join(arguments)}\nthe report says {expected},\nafter emission {written},\nand found {found}")
        checked += 1
shutil.rmtree(scratch, ignore_errors=True)
print(f"{checked} reports say what is written")
