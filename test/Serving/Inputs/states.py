"""Bytes and FLOPs of iterations of requests with states (Mamba, arXiv 2312.00752), against what stagec reports.

    states.py STAGEC FOLDER FIRST COUNT

A token takes its products and a scan of 9 FLOPs per number of a state, whosever it is. Weights are read once; of a state of F * N numbers of four bytes one is written for each sequence, and one
is read for each that has been there before; a convolution over W tokens sees W - 1 more of a sequence, as far as there are. What else a token, or a position that is wanted, reads and writes is found by two
iterations of one request each, and must not depend on what is beside it.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

JOB = """
import std.mamba;
job served {{
  model = Mamba1(L = {L}, D = {D}, N = {N}, V = {V}, R = {R}, W = {W});
  step = infer(S = requests);
  precision = bf16_mixed;
}}
"""


def run(*arguments):
    result = subprocess.run(arguments, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\n{result.stderr}")
    return json.loads(result.stdout)


def main():
    stagec, folder, first, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    folder.mkdir(parents=True, exist_ok=True)
    seen = set()
    for seed in range(first, first + count):
        draw = random.Random(seed)
        L, D, N, R, W, V = draw.randint(1, 3), 8 * draw.randint(1, 4), draw.choice([4, 16]), draw.randint(1, 6), draw.randint(2, 5), 64
        F = 2 * D
        job, file = folder / f"{seed}.stg", folder / f"{seed}.jsonl"
        job.write_text(JOB.format(**locals()))

        def serve(requests, *options):
            file.write_text("".join(json.dumps(request) + "\n" for request in requests))
            options = [f"--requests={file}", "--iteration-time=1ms", *options]
            listed = run(stagec, job, *options, "--iterations=0..1000", "--report=json")["listed"]
            for number, iteration in enumerate(listed):
                yield iteration, run(stagec, job, *options, f"--iterations={number}..{number + 1}", "--report=json")["model"]

        layer = 2 * D * F + F * W + F + F * R + 2 * F * N + R * F + F + F * N + F + F * D + D
        body, head = 2 * L * layer, 2 * (D + V * D)

        def known(iteration):
            """Bytes of weights, states and tails."""
            sequences = iteration["sequences"]
            resumed = sum(s["cached"] > 0 for s in sequences)
            tails = sum(min(s["cached"] + s["new"], W - 1 + s["new"]) for s in sequences)
            return body + (head if iteration["logits"] else 0) + L * F * (4 * N * (len(sequences) + resumed) + 2 * tails)

        def rest(prompt):
            iteration, model = next(serve([{"arrival": 0, "prompt": prompt, "output": 1}]))
            return model["phases"][0]["least_bytes"] - known(iteration)

        token = (rest(30) - rest(20)) // 10
        wanted = rest(20) - 20 * token
        requests = [{"arrival": draw.choice([0, 0, 0.002]), "prompt": draw.randint(1, 30), "output": draw.randint(1, 14)} for _ in range(draw.randint(2, 5))]
        requests.sort(key=lambda request: request["arrival"])
        swaps = ["--block=4", "--cache-blocks=12", "--preempt=swap"] if draw.random() < 0.5 else []
        for iteration, model in serve(requests, f"--token-budget={draw.randint(5, 50)}", *swaps):
            n, logits, sequences = iteration["new_tokens"], iteration["logits"], iteration["sequences"]
            found = model["phases"][0]["least_bytes"], model["flops"]["contraction"]
            products = 2 * L * (3 * D * F + F * (R + 2 * N) + R * F)
            expected = known(iteration) + n * token + logits * wanted, n * products + logits * 2 * D * V
            if found != expected:
                sys.exit(f"seed {seed}, {iteration['name']}: expected {expected}, reported {found}")
            # A state in each layer, and what a convolution looks back.
            for kind, moved in [("store", "stored"), ("load", "loaded")]:
                parts = iteration.get(moved, [])
                bytes_ = sum(L * F * (4 * N + 2 * min(W - 1, part["tokens"])) for part in parts)
                copies = sum(copy["bytes"] for copy in model["stages"][0].get("copies", []) if copy["operation"] == kind)
                if copies != bytes_:
                    sys.exit(f"seed {seed}, {iteration['name']}: expected {bytes_} bytes that are {moved}, reported {copies}")
                seen |= {moved} if parts else set()
            seen |= {"mixed"} if len({s["decodes"] for s in sequences}) > 1 else set()
            seen |= {"chunks"} if any(s["cached"] and not s["decodes"] for s in sequences) else set()
            seen |= {"several"} if len(sequences) > 1 else set()
    print(f"{count} files agree: {', '.join(sorted(seen))}")


main()
