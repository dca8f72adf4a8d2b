"""Identities between what strategies move.

    moved.py stagec jobs.stg

What is moved leaves a rank of a group of g: (g-1) times its input of an all_gather, (g-1)/g of it of a reduce_scatter and an all_to_all,
twice that of an all_reduce, all of a message. Llama 2 7B has 6,738,415,616 parameters (its weights' index), 13,476,831,232 bytes in
bf16; gradients are reduced in fp32.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, program = sys.argv[1:]
numChecked = 0


def moved(job, *defines):
    """By operation, in bytes, of a rank in a step; and how often."""
    define = [argument for entry in defines for argument in ("-D", entry)]
    report = json.loads(run([stagec, program, "--job", job, "--report=json", *define]))
    (stage,) = report["stages"]
    bytes, counts = {}, {}
    for row in stage["communication"]:
        bytes[row["operation"]] = bytes.get(row["operation"], 0) + row["moved"]
        counts[row["operation"]] = counts.get(row["operation"], 0) + row["count"]
    return bytes, counts


def check(what, found, expected):
    global numChecked
    numChecked += 1
    if found != expected:
        sys.exit(f"{what}: found {found}, expected {expected}")


full, embedding, dp, microbatches = 13_476_831_232, 32_000 * 4096 * 2, 8, 2
bytes, _ = moved("zero3")
# The gradient of a lookup reads no table.
check("ZeRO-3 gathers all parameters twice per microbatch, the embedding once", bytes["all_gather"],
      microbatches * (2 * full - embedding) * (dp - 1) // dp)
bytes, _ = moved("zero3", "again=all")
check("ZeRO-3 gathers all parameters twice, as hooks of modules do", bytes["all_gather"], microbatches * 2 * full * (dp - 1) // dp)
check("ZeRO-3 scatters all gradients once per microbatch", bytes["reduce_scatter"], microbatches * 2 * full * (dp - 1) // dp)
bytes, _ = moved("zero1")
check("ZeRO-1 gathers and scatters once", (bytes["all_gather"], bytes["reduce_scatter"]),
      (full * (dp - 1) // dp, 2 * full * (dp - 1) // dp))
bytes, _ = moved("ddp")
check("data parallelism reduces gradients once, and the loss, a number", bytes["all_reduce"],
      2 * (2 * full + microbatches * 4) * (dp - 1) // dp)

# Of a layer, what three have more than two. Under sequence parallelism the gradients of two norms, fp32, are reduced over tp, once.
L, B, S, D, tp = 3, 16, 64, 32, 4
layers = [{job: sum(moved(job, f"L={n}")[0].values()) for job in ("tp", "sp")} for n in (L - 1, L)]
tensor, sequence = (layers[1][job] - layers[0][job] for job in ("tp", "sp"))
check("tensor parallelism reduces four activations per layer and microbatch", tensor, B * 4 * 2 * (tp - 1) * (2 * S * D) // tp)
check("with sequence parallelism that keeps what it gathers as much is moved", sequence - 2 * 2 * 4 * D * (tp - 1) // tp, tensor)

# Context axes: q, k, v and what attention makes are equally large, n bytes on a rank.
cp, n = 4, 2 * S * D // 4
heads, times = moved("heads")
check("all_to_alls of four tensors, forward and backward", (times["all_to_all"], heads["all_to_all"]),
      (B * L * 8, B * L * 8 * n * (cp - 1) // cp))
gather, times = moved("gather")
# Forward gathers k and v; backward gathers them again, and scatters dk and dv.
check("gathering moves cp/2 times as much forward as all_to_alls", B * L * 2 * n * (cp - 1) * 2, heads["all_to_all"] // 2 * cp)
ring, times = moved("ring")
# k and v by cp-1 hops, twice; dk and dv, of their type, as many, because backward goes the other way.
hops = B * L * 3 * 2 * n * (cp - 1)
check("a ring moves k and v twice, and dk and dv home", ring["permute"], hops)
print(numChecked, "identities hold")
