"""Compiles and verifies the jobs of a file for every combination of small degrees.

    matrix.py stagec stage-trace jobs.stg scratch-folder
"""
import itertools
import json
import shutil
import subprocess
import sys

stagec, stage_trace, program, scratch = sys.argv[1:]
verified, totals = 0, set()
for job, microbatches in (("llama", 1), ("gpt", 8)):
    for dp, tp, pp, cp, sp in itertools.product((1, 2, 4), (1, 2, 4), (1, 2, 4), (1, 2, 4), ("true", "false")):
        shutil.rmtree(scratch, ignore_errors=True)
        values = {"dp": dp, "tp": tp, "pp": pp, "cp": cp, "sequence_parallel": sp, "B": dp * microbatches}
        command = [stagec, program, "--job", job, "-o", scratch, "--report=json", "--verify-each"]
        command += [f"-D{name}={value}" for name, value in values.items()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        # Per sequence, since the batch grows with dp.
        flops = json.loads(done.stdout)["flops"]
        totals.add((job, flops["model"] // values["B"]))
        check = subprocess.run([stage_trace, "verify", scratch], capture_output=True, text=True)
        if check.returncode:
            sys.exit(f"{' '.join(command)}\n{check.stdout}{check.stderr}")
        verified += 1
shutil.rmtree(scratch, ignore_errors=True)
print(f"{verified} traces verified, {len(totals)} model FLOP totals")
