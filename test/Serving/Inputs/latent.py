"""Iterations of requests with latent attention (DeepSeek-V2, arXiv 2405.04434), by closed forms, against what stagec reports.

    latent.py STAGEC FOLDER FIRST COUNT

As packed.py, whose sequences these are. A prompt's rows see keys and values of E + R and EV numbers per head, which are made of the KL cached ones of all
positions that the sequence has: 2 KL (E + EV) per head and position. A row that decodes sees the KL + R numbers themselves, with its query brought there
and its result brought back: 2 KL (E + EV) per head and row. An iteration of both does each for those of its kind.
"""

import json
import random
import sys
from pathlib import Path

from packed import pairs, run

L, D, H, QL, KL, E, R, EV, F, V = 2, 64, 4, 24, 16, 8, 4, 12, 96, 128
JOB = f"""
import std.deepseek;
machine by_flops {{
  flops.bf16 = 1GFLOP/s; flops.f32 = 1GFLOP/s; contraction.bf16 = 1; attention.bf16 = 1; memory.rate = 9e18B/s;
  level all {{ ranks = 1; rate = 9e18B/s; }}
}}
job latent {{
  model = DeepSeek(L = {L}, D = {D}, H = {H}, QL = {QL}, KL = {KL}, E = {E}, R = {R}, EV = {EV}, F = {F}, FE = 8, X = 4, K = 2, V = {V}, dense = {L}, shared = 1);
  step = infer(S = requests);
  precision = bf16_mixed;
}}
"""


def flops(sequences, logits):
    contraction, attention = 2 * logits * D * V, 0
    for s in sequences:
        n, c = s["new"], s["cached"]
        every = D * QL + QL * H * (E + R) + D * (KL + R) + H * EV * D + 3 * D * F
        contraction += L * 2 * n * every + L * 2 * (n if s["decodes"] else c + n) * KL * H * (E + EV)
        attention += L * 2 * H * pairs(n, c) * ((KL + R + KL) if s["decodes"] else (E + R + EV))
    return contraction, attention


stagec, folder, first, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
folder.mkdir(parents=True, exist_ok=True)
(folder / "job.stg").write_text(JOB)
mixed = 0
for seed in range(first, first + count):
    draw = random.Random(seed)
    file = folder / f"{seed}.jsonl"
    with file.open("w") as out:
        for i in range(draw.randint(1, 8)):
            out.write(json.dumps({"timestamp": 3 * i, "input_length": draw.choice([1, draw.randint(2, 90)]), "output_length": draw.randint(1, 20)}) + "\n")
    options = ["--iteration-time=1ms", f"--token-budget={draw.randint(8, 60)}"]
    listed = json.loads(run(stagec, "serve", file, *options, "--iterations=0..100000", "--report=json"))["listed"]
    report = json.loads(run(stagec, folder / "job.stg", f"--requests={file}", *options, "--report=json"))["model"]
    sums = [sum(of) for of in zip(*(flops(it["sequences"], it["logits"]) for it in listed))]
    found = [report["flops"]["contraction"], report["flops"]["attention"]]
    if sums != found:
        sys.exit(f"seed {seed}: expected {sums}, reported {found}")
    both = sum(len({s["decodes"] for s in it["sequences"]}) == 2 for it in listed)
    units = sum(phase["units"] for phase in report["phases"])
    if units != len(listed) + both:
        sys.exit(f"seed {seed}: {len(listed)} iterations, {both} of both kinds, and {units} units")
    mixed += both
    # A FLOP takes a nanosecond, in each of the two units. Each product and attention has a kernel of 2 us: 8 of a layer for prompts; for requests that
    # decode 7, and what brings queries there and results back are products of each head.
    timed = json.loads(run(stagec, folder / "job.stg", f"--requests={file}", options[1], "-Dmachine=by_flops", "--iterations=0..100000", "--report=json"))
    kernels = 0
    for it in timed["listed"]:
        for decodes in [False, True]:
            of_unit = [s for s in it["sequences"] if s["decodes"] == decodes]
            if of_unit:
                kernels += L * (7 + 2 * H if decodes else 8) + any(s["samples"] for s in of_unit)
    expected = 2000 * kernels + sum(timed["model"]["flops"][of] for of in ["contraction", "attention", "other"])
    found = round(sum(it["duration_s"] for it in timed["listed"]) * 1e9)
    if expected != found:
        sys.exit(f"seed {seed}: iterations last {found} ns, and their {kernels} kernels and FLOPs {expected}")
print(f"{count} files agree, {mixed} iterations of both kinds")
