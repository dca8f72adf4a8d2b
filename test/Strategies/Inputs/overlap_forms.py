"""Overlap is real: the greedy execution of traces against closed forms, for several numbers of layers and ranks.

    overlap_forms.py stagec stage-trace folder-of-tests scratch-folder

Units of time: a layer's forward takes one, its backward two, its update one, the loss and its gradient one each: 4L + 2 compute.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, stage_trace, tests, scratch = sys.argv[1:]
numChecked = 0


def time(test, job, defines, *options, steps=1):
    """The step and what of it is exposed, of all ranks alike."""
    define = [argument for entry in defines for argument in ("-D", entry)]
    folder = os.path.join(scratch, "forms")
    run([stagec, os.path.join(tests, test), "--job", job, *define, f"--steps={steps}", "--force", "-o", folder])
    lines = run([stage_trace, "timeline", folder, *options]).splitlines()
    (row,) = lines[2:]
    return tuple(float(number.replace(",", "")) for number in (re.match(r"step: ([\d,.]+)", lines[0])[1], row.split()[3]))


def check(what, found, expected, slack=0.0):
    global numChecked
    numChecked += 1
    if any(abs(a - b) > slack for a, b in zip(found, expected)):
        sys.exit(f"{what}: found {found}, expected {expected}")


for L in (4, 9, 16):
    # Collectives as long as a layer's forward. Forward waits for its first gather alone, and so does backward where it gathers the last layer again.
    for job in ("chain", "two"):
        check(f"FSDP, {job}, {L} layers", time("fsdp-prefetch-memory.stg", job, [f"L={L}"]), (4 * L + 3, 1))
    check(f"FSDP, again, {L} layers", time("fsdp-prefetch-memory.stg", "again", [f"L={L}"]), (4 * L + 4, 2))
    # Buckets as long as a layer's backward: all are hidden, or, behind it, all but what the updates of L - 1 layers hide.
    buckets = ["--communication-units=2"]
    check(f"buckets beside backward, {L} layers", time("reduce-gradients-time.stg", "beside", [f"L={L}"], *buckets), (4 * L + 2, 0))
    check(f"buckets behind backward, {L} layers", time("reduce-gradients-time.stg", "behind", [f"L={L}"], *buckets),
          (3 * L + 2 + 2 * L + 1, L + 1))
    # Steps of L layers and a head, with gathers and reductions as long as a layer's backward. Between two steps forward waits 4 units, however many
    # layers there are: 2 until the first layer's gradient is reduced, in one of which the head is updated, 2 until its parameter is gathered, and one more
    # until the next one is; all others are gathered as fast. Behind the last step there are gathers for L + 4 units more.
    compute = 2 * (L + 2) + 2 * (1 + 2 * (L + 1)) + L + 1
    for steps in (1, 2, 3):
        (found, _) = time("steps-order.stg", "ahead", [f"L={L}"], *buckets, steps=steps)
        check(f"{steps} steps, {L} layers", (found,), (steps * compute + 4 * (steps - 1) + L + 4,))
for cp in (4, 8):
    # Pairs of half a square over cp ranks and cp steps, 4 * 64 FLOPs each; a step of forward takes 1 us, of backward 2.5, a hop of
    # keys and values, 2 blocks of 4096 / cp * 64 elements of bf16, 1. All that is waited for is the last hop of dk and dv.
    flops, bytes = 4 * 64 * 4096 * 4096 // 2 // cp**2, 2 * 4096 // cp * 64 * 2
    check(f"ring of {cp}", time("ring-steps.stg", "even", [f"cp={cp}"], f"--flops={flops}e6FLOP/s", f"--link={bytes}e6B/s", "--memory=1e18B/s"),
          (3.5 * cp + 1, 1), slack=0.1)
print(numChecked, "closed forms hold")
