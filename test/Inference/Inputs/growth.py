"""Jobs that infer, by steps: what the compiler says of their sizes against files and closed forms. growth.py STAGEC STAGE-TRACE FOLDER"""

import json
import re
import subprocess
import sys
from pathlib import Path

STAGEC, TRACE, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
B, L, D, H, V, E = 8, 4, 64, 8, 256, 8
GPT = f"GPT(L = {L}, D = {D}, H = {H}, V = {V}, T = 512, rate = 0)"
LLAMA = f"Llama(L = {L}, D = {D}, H = {H}, KV = 4, F = 128, V = {V})"


def run(name, model, step, strategy, *arguments):
    path = FOLDER / f"{name}.stg"
    path.write_text("import std.transformer;\nimport std.llama;\nimport std.parallel;\n"
                    f"job j {{ model = {model}; step = infer(B = {B}, {step}); precision = bf16_mixed; strategy = {strategy}; }}\n")
    return subprocess.run([STAGEC, str(path), *arguments], check=True, capture_output=True, text=True).stdout


def check_files(name, *job, arguments=()):
    out = FOLDER / name
    run(name, *job, *arguments, "-o", str(out))
    written = sum(path.stat().st_size for path in out.iterdir() if not path.name.startswith("."))
    reported = json.loads(run(name, *job, *arguments, "--report=json"))["traces"]["bytes"]
    print(f"{name}: files as long as reported" if written == reported else f"{name}: {written} bytes, not {reported}")


check_files("eager", GPT, "S = 100, for T in 100..180, microbatch = 4", "megatron(tp = 2, pp = 2)")
check_files("batches", LLAMA, "for T in 120..140, microbatch = 1", "megatron(tp = 2)")
check_files("chunks", LLAMA, "S = 100, chunk = 30, for T in 100..140, microbatch = 2", "megatron(tp = 2, pp = 2)")
check_files("tracked", LLAMA, "S = 100, for T in 100..140, microbatch = 1", "megatron(tp = 2)", arguments=["--tracker"])


def report(model, first, end):
    made = json.loads(run("steps", model, f"for T in {first}..{end}", "megatron(tp = 2)", "--report=json"))
    (stage,) = made["stages"]
    return made["flops"], stage, made["peak"]


def compare(what, found, expected):
    print(what if found == expected else f"{what}: found {found}, expected {expected}")


short, long = report(LLAMA, 100, 140), report(LLAMA, 100, 180)
compare("attention: 4 * B * D FLOPs per layer and position that a step sees", [of[0]["attention"] for of in (short, long)],
        [4 * L * B * D * sum(range(101, end + 1)) for end in (140, 180)])
compare("products and all_reduces: twice as many in twice as many steps",
        [2 * short[0]["contraction"]] + [2 * one[what] for one in short[1]["communication"] for what in ("count", "bytes")],
        [long[0]["contraction"]] + [one[what] for one in long[1]["communication"] for what in ("count", "bytes")])
# On each of two ranks half of the heads: keys and values of all layers, and, of the layer that runs, scores and what a softmax makes of them.
compare("peak: of a position more keys and values, scores and their softmax", report(GPT, 100, 130)[2] - report(GPT, 100, 110)[2],
        20 * (2 * L * B * D // 2 * 2 + 2 * B * H // 2 * 2))


def sum_nodes(folder, unit):
    """FLOPs, and bytes of what computes, of all nodes of a unit in the traces of all ranks."""
    flops = accessed = 0
    for line in subprocess.run([TRACE, "dump", str(folder)], check=True, capture_output=True, text=True).stdout.splitlines():
        node = re.match(r'\d+ COMP "[^"]* (\w+)"', line)
        if node and node[1] == unit:
            own = int(re.search(r"num_ops=(\d+)", line)[1])
            flops += own if own > 1 else 0  # 1 stands for none
            accessed += int(re.search(r"tensor_size=(\d+)", line)[1])
    return flops, accessed


# Of 4 batches of 2 sequences units 0 to 3 prefill, and units 4 to 7 are the first steps, 40 to 43 the last ones.
job = ("phases", LLAMA, "S = 16, for T in 16..26, microbatch = 1", "megatron(dp = 2, tp = 2, pp = 2)")
run(*job, "-o", str(FOLDER / "phases"))
made = json.loads(run(*job, "--report=json"))
for phase, first, last in zip(made["phases"], ("F0", "D4"), ("F3", "D43")):
    (flops, accessed), (most_flops, most_accessed) = (sum_nodes(FOLDER / "phases", unit) for unit in (first, last))
    compare(f"{phase['phase']}: a unit is what its nodes are", list(phase.values())[1:6],
            [4 if phase["phase"] == "prefill" else 40, flops, most_flops, accessed, most_accessed])
# 26 positions, of each keys and values of 4 heads in bf16.
compare("caches: 2 * L * KV * E * 2 bytes per position and sequence", list(made["caches"].values()),
        [26 * B * 2 * L * 4 * E * 2, 2 * L * 4 * E * 2, 26, B])
# A window of 10 is full: a position more is none more in the caches.
windows = json.loads(run("windows", LLAMA.replace("Llama(", "Mistral(window = 10, "), "S = 16, for T in 16..26", "megatron(tp = 2)", "--report=json"))
compare("windows: their caches hold no more than they", list(windows["caches"].values()), [10 * B * 2 * L * 4 * E * 2, 0, 26, B])
