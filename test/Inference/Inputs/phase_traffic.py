"""What a rank communicates in a unit of inference, against closed forms. phase_traffic.py STAGEC FOLDER

Megatron's tensor parallelism reduces the result of the embedding, of attention and of the MLP (Shoeybi et al., 2019): 2 L + 1 all_reduces of tokens x D
elements of two bytes in a unit; with sequence parallelism each is a reduce_scatter and an all_gather (Korthikanti et al., 2022), but that in front of
the head only the last position moves, which one rank has: an all_reduce of it. A ring moves 2 (n - 1) / n of the bytes of an all_reduce."""

import json
import subprocess
import sys
from pathlib import Path

STAGEC, FOLDER = sys.argv[1], Path(sys.argv[2])
B, D, H, V = 8, 64, 8, 256
HEAD = "import std.transformer;\nimport std.llama;\nimport std.moe;\nimport std.loads;\nimport std.parallel;\n"
SPREAD = "strategy spread(ep = 4) { mesh (ep); shard B over ep, X over ep; }\n"


def run(model, step, strategy):
    path = FOLDER / "job.stg"
    path.write_text(HEAD + SPREAD + f"job j {{ model = {model}; step = infer(B = {B}, {step}); precision = bf16_mixed; strategy = {strategy}; }}\n")
    return json.loads(subprocess.run([STAGEC, str(path), "--report=json"], check=True, capture_output=True, text=True).stdout)


def rows(report, phase):
    """(operation, axes, stages, counts, bytes, moved) of each kind of communication."""
    (found,) = [one for one in report["phases"] if one["phase"] == phase]
    return [(one["operation"], "+".join(one["axes"]), (one["first_stage"], one["last_stage"]), (one["least_count"], one["most_count"]),
             (one["least_bytes"], one["most_bytes"]), (one["least_moved"], one["most_moved"])) for one in found["communication"]]


def row(operation, count, nbytes, ring, stages=(0, 0), axes="tp"):
    """`nbytes` of one operation in the unit with least and in the one with most; `ring`: so many of these are moved."""
    return (operation, axes, stages, (count, count), tuple(count * one for one in nbytes), tuple(int(count * one * ring) for one in nbytes))


def compare(what, found, expected):
    print(what if found == expected else f"{what}: found {found}, expected {expected}")


for L in (4, 8):
    llama = f"Llama(L = {L}, D = {D}, H = {H}, KV = 4, F = 128, V = {V})"
    made = run(llama, "S = 96, chunk = 40, for T in 96..106", "megatron(tp = 4, sequence_parallel = false)")
    compare(f"{L} layers: 2 L + 1 all_reduces; of the last chunk 16 positions, of others 40", rows(made, "prefill"),
            [row("all_reduce", 2 * L + 1, (B * 16 * D * 2, B * 40 * D * 2), 2 * 3 / 4)])
    compare(f"{L} layers: of a step 1 position", rows(made, "decode"), [row("all_reduce", 2 * L + 1, (B * D * 2,) * 2, 2 * 3 / 4)])
    whole = B * 96 * D * 2
    made = run(llama, "S = 96", "megatron(tp = 4)")
    compare(f"{L} layers: reduce_scatter and all_gather", rows(made, "prefill"),
            [row("reduce_scatter", 2 * L + 1, (whole,) * 2, 3 / 4), row("all_gather", 2 * L, (whole // 4,) * 2, 3), row("all_reduce", 1, (B * D * 2,) * 2, 2 * 3 / 4)])
    # Of two stages the first has the embedding, and sends; a batch has half of the sequences.
    half = (B // 2 * 96 * D * 2,) * 2
    made = run(llama, "S = 96, for T in 96..106", "megatron(tp = 2, pp = 2, sequence_parallel = false)")
    compare(f"{L} layers: stages", rows(made, "prefill"),
            [row("all_reduce", L + 1, half, 1, (0, 0)), row("all_reduce", L, half, 1, (1, 1)), row("send", 1, half, 1, (0, 0), "pp")])

# Ranks have different experts, with different numbers of tokens: of the only unit the report of the step says the same.
made = run(f"Mixtral(L = 2, D = {D}, H = {H}, KV = 4, X = 8, K = 2, FE = 96, V = {V}, loads = [[13, 2, 7, 0, 9, 1, 5, 3], [1, 9, 9, 1, 1, 1, 1, 1]])", "S = 32", "spread()")
(stage,), (prefill,) = made["stages"], made["phases"]
compare("experts with a load: the only unit is the step", [(one["operation"], one["least_count"], one["most_bytes"]) for one in prefill["communication"]],
        [(one["operation"], one["count"], one["bytes"]) for one in stage["communication"]])
print("ranks differ" if any("least_bytes" in one for one in stage["communication"]) else "no ranks differ")
# Steps, which differ in what attention sees, and the prefill are together the step of the job.
made = run(f"Mixtral(L = 2, D = {D}, H = {H}, KV = 4, X = 8, K = 2, FE = 96, V = {V}, loads = [equal(8)])", "S = 32, for T in 32..42", "spread()")
(stage,) = made["stages"]
sums = {}
for phase in made["phases"]:
    for one in phase["communication"]:
        assert (one["least_count"], one["least_bytes"]) == (one["most_count"], one["most_bytes"])
        count, nbytes = sums.get(one["operation"], (0, 0))
        sums[one["operation"]] = (count + phase["units"] * one["most_count"], nbytes + phase["units"] * one["most_bytes"])
step = {}
for one in stage["communication"]:
    count, nbytes = step.get(one["operation"], (0, 0))
    step[one["operation"]] = (count + one["count"], nbytes + one["bytes"])
compare("units add up to the step", sums, step)
