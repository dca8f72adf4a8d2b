"""What fits into a memory, against closed forms and against the job with those values. fits.py STAGEC FOLDER

Of a Llama in bf16 on tp ranks, without what is not split: a rank has (L (2 D D + 2 D KV E + 3 D F) + 2 V D) / tp + (2 L + 1) D weights of two bytes, and of
a position 2 L KV E / tp numbers in its caches. A prefill, with sequence parallelism, holds most where an MLP has gate, up and their product, 3 F / tp
numbers of a position, beside the residual stream, D / tp; a step without it has D of the latter."""

import json
import subprocess
import sys
from pathlib import Path

STAGEC, FOLDER = sys.argv[1], Path(sys.argv[2])
L, D, H, KV, E, F, V = 4, 256, 8, 4, 32, 1024, 1024
LLAMA = f"Llama(L = {L}, D = {D}, H = {H}, KV = {KV}, F = {F}, V = {V})"
HEAD = """import std.transformer;\nimport std.moe;\nimport std.parallel;
strategy spread(ep = 4) { mesh (ep); shard B over ep, X over ep; }\n"""


def run(model, step, strategy, *arguments):
    path = FOLDER / "job.stg"
    path.write_text(HEAD + f"job j {{ model = {model}; step = {step}; precision = bf16_mixed; strategy = {strategy}; }}\n")
    return json.loads(subprocess.run([STAGEC, str(path), "--report=json", *arguments], check=True, capture_output=True, text=True).stdout)


def compare(what, found, expected):
    print(what if found == expected else f"{what}: found {found}, expected {expected}")


def weights(tp):
    return 2 * ((L * (2 * D * D + 2 * D * KV * E + 3 * D * F) + 2 * V * D) // tp + (2 * L + 1) * D)


def search(limit, *job, arguments=()):
    return {one["size"]: one for one in run(*job, *arguments, f"--fits={limit}B")["sizes"]}


def check_closed_form(what, limit, found, unit, peak):
    """`peak` of a value; values are multiples of `unit`."""
    largest = max((value for value in range(0, 100_000, unit) if value and peak(value) <= limit), default=None)
    if largest is None:
        compare(what, found, {**found, "largest": None, "next": {"value": unit, "peak": peak(unit)}})
        return
    compare(what, (found["largest"], found["next"]),
            ({"value": largest, "peak": peak(largest)}, {"value": largest + unit, "peak": peak(largest + unit)}))


for limit in (80 << 20, 160 << 20, 6_000_000, 4_461_056, 1000):
    found = search(limit, LLAMA, "infer(B = 4, S = 64, for T in 64..74)", "megatron(tp = 2)")
    prefilled = lambda B, S: weights(2) + B * ((S + 10) * 2 * L * KV // 2 * E * 2 + S * (D + 3 * F) // 2 * 2)
    check_closed_form(f"{limit}: sequences of 74 positions", limit, found["B"], 1, lambda B: prefilled(B, 64))
    check_closed_form(f"{limit}: positions of 4 sequences, which two ranks share", limit, found["S"], 2, lambda S: prefilled(4, S))
    found = search(limit, LLAMA, "infer(B = 4, for T in 100..110)", "megatron(tp = 2)")
    decoded = lambda B, T: weights(2) + B * ((T + 10) * 2 * L * KV // 2 * E * 2 + (D + 3 * F // 2) * 2)
    check_closed_form(f"{limit}: sequences with caches", limit, found["B"], 1, lambda B: decoded(B, 100))
    check_closed_form(f"{limit}: positions in caches", limit, found["T"], 1, lambda T: decoded(4, T))
whole = search(decoded(7, 100), LLAMA, "infer(B = 4, for T in 100..110)", "megatron(tp = 2)")["B"]
compare("what needs all of the memory fits", whole["largest"]["value"], 7)
# Four batches for the stages, on two ranks each: eight sequences more at a time, and so many batches of two per rank.
found = search(16 << 20, LLAMA, "infer(B = 32, S = 64, for T in 64..74)", "megatron(pp = 4, dp = 2)")["B"]
compare("a multiple of stages and ranks", (found["largest"]["value"] % 8, found["next"]["value"] - found["largest"]["value"]), (0, 8))
found = search(16 << 20, LLAMA, "infer(B = 32, S = 64)", "megatron(pp = 4, dp = 2)")["B"]
compare("prompts that fill stages alike", (found["largest"]["value"] % 8, found["next"]["value"] - found["largest"]["value"]), (0, 8))
found = search(16 << 20, LLAMA, "infer(B = 32, S = 64, for T in 64..74, microbatch = 2)", "megatron(pp = 4, dp = 2)")["B"]
compare("a multiple of batches", (found["largest"]["value"] % 4, found["next"]["value"] - found["largest"]["value"]), (0, 4))
# Three batches are too few for four stages, whatever fits.
tiny = run(LLAMA, "infer(B = 16, S = 64, for T in 64..74, microbatch = 2)", "megatron(pp = 4, dp = 2)")["peak"]
found = search(tiny - 1, LLAMA, "infer(B = 32, S = 64, for T in 64..74, microbatch = 2)", "megatron(pp = 4, dp = 2)")["B"]
compare("at least a batch per stage", (found["largest"], found["next"]), (None, {"value": 16, "peak": tiny}))
# An expert has 1.25 x 2 choices / 8 slots for each of the B S / 4 tokens of a rank: 1.25 S, and 5 B.
found = search(64 << 20, "Mixtral(L = 2, D = 64, H = 4, KV = 4, X = 8, K = 2, FE = 96, V = 256, capacity = 1.25)", "infer(B = 16, S = 64)", "spread()")
for size in ("B", "S"):
    (largest, following) = (found[size][which]["value"] for which in ("largest", "next"))
    print(f"{size} of experts: multiples of {following - largest}")


def check_values(what, limit, found, job):
    """The job with the values has the peaks, on either side of the limit."""
    values = [found[which]["value"] for which in ("largest", "next")]
    peaks = [job(value)["peak"] for value in values]
    compare(what, [found[which]["peak"] for which in ("largest", "next")], peaks)
    print(f"{what}: {'on' if peaks[0] <= limit < peaks[1] else 'not on'} both sides of the limit")


limit = 50_000_000
piped = "megatron(pp = 2, dp = 2, tp = 2)"
found = search(limit, LLAMA, "train(B = 16, S = 64, microbatch = 2, optimizer = adamw)", piped)
check_values("microbatch", limit, found["microbatch"],
             lambda n: run(LLAMA, f"train(B = {n * 2 * 4}, S = 64, microbatch = {n}, optimizer = adamw)", piped))
check_values("S", limit, found["S"], lambda n: run(LLAMA, f"train(B = 16, S = {n}, microbatch = 2, optimizer = adamw)", piped))
found = search(limit, LLAMA, "infer(B = 8, S = 64, chunk = 100, for T in 64..74, tokens = 3)", piped, arguments=["-D", "B=16"])
check_values("chunks", limit, found["S"], lambda n: run(LLAMA, f"infer(B = 16, S = {n}, chunk = 100, for T in {n}..{n + 10}, tokens = 3)", piped))
# A server: the cache, for requests that would hold less.
(FOLDER / "requests.jsonl").write_text("".join(f'{{"arrival": {i / 100}, "prompt": {100 + 37 * i % 400}, "output": 20}}\n' for i in range(40)))
served = [LLAMA, "infer(S = requests)", "megatron(tp = 2, sequence_parallel = false)", f"--requests={FOLDER / 'requests.jsonl'}", "--iteration-time=10ms",
          "--token-budget=512"]
for limit in (8_000_000, 50_000_000):
    found = search(limit, *served)["cache-blocks"]
    check_values(f"cache-blocks below {limit}", limit, found, lambda n: run(*served, f"--cache-blocks={n}")["model"])
# Learned positions end, whatever fits.
found = search(1 << 30, f"GPT(L = 2, D = 64, H = 4, V = 256, T = 512, rate = 0)", "infer(B = 4, S = 64, for T in 64..74)", "megatron(tp = 2)")["S"]
print(f"positions: {found['largest']['value']}, then refused: {found['next'].get('refused')}")
