"""Sequences of different lengths, by closed forms. lengths.py STAGEC MODELS.stg FOLDER COUNT

Which positions a unit takes follows from the rules (R21.12): each batch is prefilled in chunks, of each of its sequences one, then all batches do the first
step, the second one, ... What such a unit takes of a Llama is what test/Serving/Inputs/packed.py says, which was written for iterations of requests."""

import json
import math
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Serving" / "Inputs"))
import packed
from packed import D, E, F, H, KV, L, V, W

STAGEC, MODELS, FOLDER, COUNT = sys.argv[1], Path(sys.argv[2]).read_text(), Path(sys.argv[3]), int(sys.argv[4])


def compile_job(text, *arguments):
    (FOLDER / "job.stg").write_text(text)
    return subprocess.run([STAGEC, str(FOLDER / "job.stg"), *arguments], capture_output=True, text=True)


def report(text, *arguments):
    result = compile_job(text, "--report=json", *arguments)
    if result.returncode:
        sys.exit(text + result.stderr)
    return json.loads(result.stdout)


def list_units(lengths, of_batch, chunk, steps, tokens):
    """(phase, positions of its sequences, logits) of each unit."""
    batches = [lengths[i : i + of_batch] for i in range(0, len(lengths), of_batch)]
    for batch in batches:
        for at in range(0, max(batch), chunk):
            parts = [{"new": min(chunk, length - at), "cached": at} for length in batch if at < length]
            yield "prefill", parts, len(parts)
    for step in range(-(-steps // tokens)):
        for batch in batches:
            yield "decode", [{"new": tokens, "cached": length + step * tokens} for length in batch], tokens * len(batch)


def check_drawn(seed):
    draw = random.Random(seed)
    tp, stages, model = draw.choice([1, 2, 4]), draw.choice([1, 1, 2]), draw.choice(["llama", "llama", "mistral"])
    of_batch, batches = draw.randint(1, 4), draw.randint(stages, 3)
    lengths = [draw.choice([1, draw.randint(2, 90)]) for _ in range(of_batch * batches)]
    steps, tokens, chunk = draw.choice([0, draw.randint(1, 9)]), draw.randint(1, 3), draw.choice([None, draw.randint(3, 40)])
    words = [f"S = {lengths}", f"microbatch = {of_batch}"]
    words += [f"for T in 0..{steps}", f"tokens = {tokens}"] if steps else []
    words += [f"chunk = {chunk}"] if chunk else []
    parameters = f"L = {L}, D = {D}, H = {H}, KV = {KV}, F = {F}, V = {V}"
    name = f"Llama({parameters})" if model == "llama" else f"Mistral({parameters}, window = {W})"
    made = report(f"""import std.llama;\nimport std.parallel;\nimport std.transformer;
job j {{ model = {name}; step = infer({', '.join(words)}); precision = bf16_mixed; strategy = megatron(tp = {tp}, pp = {stages}, sequence_parallel = false); }}\n""")
    units = list(list_units(lengths, of_batch, chunk or max(lengths), steps, tokens))
    products, attention = (sum(both) for both in zip(*(packed.flops(parts, logits, model) for _, parts, logits in units)))
    found = [made["flops"]["contraction"], made["flops"]["attention"]]
    expected = [products, attention]
    for phase in made["phases"]:
        own = [(parts, logits) for kind, parts, logits in units if kind == phase["phase"]]
        counts = [sum(part["new"] for part in parts) for parts, _ in own]
        found.append(phase["units"])
        expected.append(len(own))
        if model == "llama":
            accessed = [tp * sum(packed.llama_bytes(parts, logits, tp, 1)) for parts, logits in own]
            found += [phase["least_bytes"], phase["most_bytes"]]
            expected += [min(accessed), max(accessed)]
        for one in phase["communication"]:
            # Of a stage the reductions of its layers, and that of the embedding on the first.
            times = 1 if one["operation"] == "send" else 2 * L // stages + (one["first_stage"] == 0)
            found += [one["least_count"], one["most_count"], one["least_bytes"], one["most_bytes"]]
            expected += [times, times] + [times * 2 * D * most for most in (min(counts), max(counts))]
    ends = [length + -(-steps // tokens) * tokens for length in lengths]
    room = sum(ends) if model == "llama" else min(W * len(ends), sum(ends))
    found.append(made["caches"]["bytes"])
    expected.append(2 * L * KV * E * 2 * room)
    if found != expected:
        sys.exit(f"seed {seed}: {words}: found {found}, expected {expected}")


for seed in range(COUNT):
    check_drawn(seed)
print(f"{COUNT} jobs agree")

# Equal lengths are S: every model of the library, but for those that are refused.
equal, refused = 0, []
step = "infer(B = 4, S = 16, for T in 16..20)"
for job in re.findall(r"^job (\w+)", MODELS, re.M):
    listed = compile_job(MODELS.replace(step, "infer(S = [16, 16, 16, 16], for T in 0..4)"), "--job=" + job, "--report=json")
    if listed.returncode:
        refused.append(listed.stderr.splitlines()[0].split("error: ")[1].split(",")[0])
        continue
    listed, plain = json.loads(listed.stdout), report(MODELS, "--job=" + job)
    keys = ("flops", "parameters", "phases")
    own = [[one[key] for key in keys] + [one["caches"]["bytes"]] + [stage["communication"] for stage in one["stages"]] for one in (listed, plain)]
    if own[0] != own[1]:
        print(f"{job}: of a list {own[0]}, of S {own[1]}")
    equal += 1
print(f"{equal} models compared, {len(refused)} refused: " + "; ".join(sorted(set(refused))))


def check_lengths(what, function, n, expected, tolerance=0):
    """Some of the n lengths, each of which is that of a job's only sequence."""
    chosen = sorted({0, 1, n // 7, n // 3, n // 2, n - n // 9 - 1, n - 1})
    for i in chosen:
        made = report(f"""import std.llama;\nimport std.lengths;
job j {{ model = TiedLlama(L = 2, D = 8, H = 2, KV = 2, F = 8, V = 8); step = infer(S = [{function}[{i}]]); precision = bf16_mixed; }}\n""")
        length = made["caches"]["positions"]
        if abs(length - expected[i]) > 0.5 + tolerance * expected[i]:
            print(f"{what}: number {i} is {length}, expected {expected[i]}")
    print(what)


n = 1000
middles = [(i + 0.5) / n for i in range(n)]
check_lengths("uniform", f"uniform({n}, 100, 2000)", n, [100 + 1900 * p for p in middles])
normal = statistics.NormalDist()
check_lengths("lognormal", f"lognormal({n}, 500, 1.2)", n, [500 * math.exp(1.2 * normal.inv_cdf(p)) for p in middles], 1.2 * 0.00045)
check_lengths("lognormal, cut", "lognormal(3, 500, 1.2, least = 300, most = 900)", 3, [300, 500, 900])
check_lengths("exponential", f"exponential({n}, 300)", n, [max(1, -300 * math.log(1 - p)) for p in middles])

# Twice as many of the same lengths take twice as much, but for the weights.
twice = [report(MODELS.replace(step, f"infer(S = {lengths}, for T in 0..4)"), "--job=mistral")
         for lengths in ([5, 70, 33], [5, 70, 33] * 2)]
print("twice as much" if all(2 * twice[0]["flops"][key] == twice[1]["flops"][key] for key in ("contraction", "attention", "other")) else f"not twice as much: {twice}")
