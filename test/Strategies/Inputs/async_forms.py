"""Asynchronous tensor parallelism: the greedy execution of traces against closed forms, for several numbers of layers and ranks.

    async_forms.py stagec stage-trace async-tp-products.stg scratch-folder

g ranks, L layers of two products, 6 products a layer with backward, each in g steps, and 5 rings of g - 1 hops. Where a hop takes as long as a step
all products run one behind the other, and nothing is waited for.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, stage_trace, program, scratch = sys.argv[1:]
folder = os.path.join(scratch, "forms")
numChecked = 0
for g in (2, 4, 8):
    for L in (1, 3, 6):
        run([stagec, program, "--job", "two", "-D", f"tp={g}", "-D", f"L={L}", "--force", "-o", folder])
        flops, bytes = 2 * (4096 // g) * 1024 * (4096 // g), 4096 // g * 1024 * 2
        rates = [f"--flops={flops}e6FLOP/s", f"--link={bytes}e6B/s", "--memory=1e18B/s"]
        line = run([stage_trace, "timeline", folder, *rates]).splitlines()[2]
        found = [float(number.replace(",", "")) for number in line.split()[1:4]]
        expected = [6 * g * L, 5 * (g - 1) * L, 0]
        if any(abs(a - b) > 0.1 * L for a, b in zip(found, expected)):  # loss, and sums and updates of layers
            sys.exit(f"{g} ranks, {L} layers: found {found}, expected {expected}")
        numChecked += 1
print(numChecked, "closed forms hold")
