"""What iterations of requests take of a model, by closed forms, against what stagec reports.

    packed.py STAGEC FOLDER FIRST COUNT

Files of requests and options of the server are drawn at random, one per seed. Which tokens an iteration has is what `stagec serve` lists
(serving.py checks that). From there on this knows the shapes of a Llama: n new tokens of a sequence behind c cached ones are n rows of
all products; a row of attention sees its own token and all before it, a triangle of side n counting n * n / 2 (docs/language, R14.11); a
cache gets n entries and gives c + n; logits are made where a token is needed. Each op reads its operands once and writes its result.
On a pipeline the first stage has the embedding, the last one the head, each half of the layers; it works on iterations in turn, each when the
stage before it is done.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

L, D, H, KV, F, V, E, W = 4, 64, 8, 4, 128, 512, 8, 20
KERNEL = 2000  # nanoseconds of the kernel of a product or of attention, beyond its roof
JOB = """
import std.llama;
import std.parallel;
import std.transformer;
// One FLOP takes a nanosecond, or one byte, and nothing else takes a tick.
machine by_flops {{
  flops.bf16 = 1GFLOP/s; flops.f32 = 1GFLOP/s; contraction.bf16 = 1; attention.bf16 = 1; memory.rate = 9e18B/s; host.rate = 9e18B/s;
  level all {{ ranks = 16; rate = 9e18B/s; }}
}}
machine by_memory {{
  flops.bf16 = 9e18FLOP/s; contraction.bf16 = 1; attention.bf16 = 1; memory.rate = 1GB/s; memory.efficiency = 1; host.rate = 9e18B/s;
  level all {{ ranks = 16; rate = 9e18B/s; }}
}}
job llama {{
  model = Llama(L = {L}, D = {D}, H = {H}, KV = {KV}, F = {F}, V = {V});
  step = infer(S = requests);
  precision = bf16_mixed;
  strategy = megatron(pp = {pp}, tp = {tp}, sequence_parallel = false);
}}
job mistral extends llama {{ model = Mistral(L = {L}, D = {D}, H = {H}, KV = {KV}, F = {F}, V = {V}, window = {W}); }}
"""


def pairs(n, c):
    return c + 1 if n == 1 else n * c + n * n / 2


def window_pairs(n, c):
    def area(r):  # of the first r rows
        return r * r / 2 if r <= W else r * W - W * W / 2
    return min(c + 1, W) if n == 1 else area(c + n) - area(c)


def flops(sequences, logits, model):
    n = sum(s["new"] for s in sequences)
    seen = sum((pairs if model == "llama" else window_pairs)(s["new"], s["cached"]) for s in sequences)
    products = L * n * 2 * (D * (H + 2 * KV) * E + H * E * D + 3 * D * F) + 2 * logits * D * V
    attention = L * seen * 4 * H * E
    return products, attention


def llama_bytes(sequences, logits, tp, pp):
    """Of a rank of each stage."""
    n, context = sum(s["new"] for s in sequences), sum(s["new"] + s["cached"] for s in sequences)
    h, kv, f, v = H // tp, KV // tp, F // tp, V // tp
    norm, add = 2 * n * D + D, 3 * n * D
    layer = norm + n * D + D * (h + 2 * kv) * E + n * (h + 2 * kv) * E  # queries, keys and values by one product
    layer += 2 * n * h * E + 2 * n * kv * E  # rotary positions
    layer += 2 * (2 * n * kv * E)  # keys and values, read and written to caches
    layer += 2 * n * h * E + 2 * context * kv * E + 2 * n * h  # attention and, in four bytes each, its statistics
    layer += n * h * E + h * E * D + n * D + add + norm
    layer += n * D + 2 * D * f + 2 * n * f + 3 * n * f + n * f + f * D + n * D + add
    stages = [L // pp * layer] * pp
    stages[0] += 2 * n * D + 2 * n  # rows of the embedding, by numbers of four bytes
    if logits:
        stages[-1] += 2 * logits * D + D + logits * D + D * v + logits * v
    return [2 * stage for stage in stages]


def llama_flops(sequences, logits, tp, pp):
    """Of a rank of each stage, all of them."""
    n = sum(s["new"] for s in sequences)
    other = L * n * (2 * D + 8 * D + 3 * (H + KV) * E // tp + 6 * F // tp)
    head = 2 * logits * D * V / tp
    stages = [((sum(flops(sequences, logits, "llama")) / tp - head) + other) / pp] * pp
    stages[-1] += head + 4 * logits * D
    return stages


def add_kernels(stages, logits, pp):
    """Of each layer the products of queries, keys and values, of the output, and two of the MLP, and attention; and the head."""
    stages = [stage + 5 * L // pp * KERNEL for stage in stages]
    stages[-1] += KERNEL if logits else 0
    return stages


def leave_out_statistics(stages, sequences, tp, pp):
    """What attention writes for each row and head is not of its roof."""
    n = sum(s["new"] for s in sequences)
    return [stage - 4 * n * H // tp * L // pp for stage in stages]


def through(starts, of_stages):
    """How long each iteration lasts."""
    free, lasts = [0] * len(of_stages[0]), []
    for start, takes in zip(starts, of_stages):
        at = start
        for stage, time in enumerate(takes):
            free[stage] = at = max(at, free[stage]) + time
        lasts.append(at - start)
    return lasts


def run(*arguments):
    result = subprocess.run(arguments, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\n{result.stderr}")
    return result.stdout


def main():
    stagec, folder, first, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    folder.mkdir(parents=True, exist_ok=True)
    seen = set()
    for seed in range(first, first + count):
        draw = random.Random(seed)
        tp, pp, model = draw.choice([1, 2, 4]), draw.choice([1, 1, 2, 4]), draw.choice(["llama", "llama", "mistral"])
        job, file = folder / f"{seed}.stg", folder / f"{seed}.jsonl"
        job.write_text(JOB.format(**globals(), tp=tp, pp=pp))
        time, prefixes = 0, draw.random() < 0.3
        with file.open("w") as out:
            for _ in range(draw.randint(1, 12)):
                time += draw.choice([0, 1, 3, 40])
                request = {"timestamp": time, "input_length": draw.choice([1, draw.randint(2, 90)]), "output_length": draw.randint(1, 20)}
                if prefixes:
                    request["hash_ids"] = list(range(common := draw.randint(0, 4))) + [1000 * time + 100 * common + i for i in range(request["input_length"] // 8)]
                out.write(json.dumps(request) + "\n")
        block, most = draw.choice([1, 4, 16]), draw.randint(1, 6)
        options = ["--iteration-time=1ms", f"--token-budget={draw.randint(5, 80)}", f"--max-sequences={most}", f"--block={block}"]
        blocks = None
        if draw.random() < 0.5:
            blocks = draw.randint(-(-120 // block), -(-240 // block))
            options += [f"--cache-blocks={blocks}", f"--preempt={draw.choice(['recompute', 'swap'])}"]
        if draw.random() < 0.3:
            options.append(f"--chunk={draw.randint(4, 30)}")
        if prefixes:
            options += ["--prefix-block=8"] + draw.choice([[], ["--prefix-store=6"]])
        if draw.random() < 0.3:
            options += ["--draft=2", "--acceptance=0.5"]
        listed = json.loads(run(stagec, "serve", file, *options, f"--stages={pp}", "--iterations=0..100000", "--report=json"))["listed"]
        a = draw.randrange(len(listed))
        b = draw.randint(a + 1, len(listed))
        window = [] if draw.random() < 0.5 else [f"--iterations={a}..{b}"]
        chosen = listed[a:b] if window else listed
        report = json.loads(run(stagec, job, f"--job={model}", f"--requests={file}", *options, *window, "--report=json"))["model"]

        def expect(what, expected, found):
            if expected != found:
                sys.exit(f"seed {seed}, {model}, pp {pp}, tp {tp}: {what}: expected {expected}, reported {found}\n{' '.join(options + window)}")

        products = attention = 0
        phases = {}
        for iteration in chosen:
            sequences, logits = iteration["sequences"], iteration["logits"]
            expect("logits of " + iteration["name"], sum(1 + s["drafts"] for s in sequences if s["samples"]), logits)
            both = flops(sequences, logits, model)
            products, attention = products + both[0], attention + both[1]
            kind = "decode" if all(s["decodes"] for s in sequences) else "prefill"
            units = phases.setdefault(kind, [])
            units.append(tp * sum(llama_bytes(sequences, logits, tp, pp)))
            seen |= {kind, "no logits" if not logits else "logits", "mixed" if len({s["decodes"] for s in sequences}) > 1 else ""}
        expect("products", products, report["flops"]["contraction"])
        expect("attention", attention, report["flops"]["attention"])
        for phase in report["phases"]:
            units = phases.pop(phase["phase"])
            expect("units of " + phase["phase"], len(units), phase["units"])
            if model == "llama":
                expect("bytes of " + phase["phase"], [min(units), max(units)], [phase["least_bytes"], phase["most_bytes"]])
        expect("further phases", {}, phases)
        tokens = sum(s["new"] for iteration in chosen for s in iteration["sequences"])
        expect("stages", pp, len(report["stages"]))
        for number, stage in enumerate(report["stages"]):
            times = {}
            if tp > 1:  # behind attention and MLP of each layer, and behind the embedding
                times["all_reduce"] = 2 * L // pp + (number == 0)
            if number + 1 < pp:  # what comes out of its last layer
                times["send"] = 1
            found = {}
            for entry in stage["communication"]:  # of a chunk and of steps apart
                before = found.get(entry["operation"], (0, 0))
                found[entry["operation"]] = (before[0] + entry["count"], before[1] + entry["bytes"])
            copies = {}
            for kind, moved in [("store", "stored"), ("load", "loaded")]:
                of = [min(part["tokens"], W if model == "mistral" else 1000) for iteration in chosen for part in iteration.get(moved, [])]
                if of:  # keys and values of its layers and heads, two bytes each, in as many nodes as it has caches
                    copies[kind] = (2 * L // pp * sum(moved in iteration for iteration in chosen), sum(of) * L // pp * 2 * KV // tp * E * 2)
                    seen |= {kind}
            expect(f"copies of stage {number}", copies, {copy["operation"]: (copy["count"], copy["bytes"]) for copy in stage.get("copies", [])})
            expect(f"communication of stage {number}", {of: (len(chosen) * count, tokens * D * 2 * count) for of, count in times.items()}, found)
        room = (blocks or max(iteration["blocks"] for iteration in listed)) * block
        if model == "mistral":  # a request keeps a window
            room = min(room, pp * most * W)
        expect("caches", room * L * 2 * KV * E * 2, report["caches"]["bytes"])
        if model == "llama":
            rate = draw.choice(["flops", "memory"])
            timed = run(stagec, job, "--job=llama", f"--requests={file}", *options[1:], f"-Dmachine=by_{rate}", "--iterations=0..100000", "--report=json")
            timed = json.loads(timed)["listed"]

            def takes(it):
                if rate == "flops":
                    stages = llama_flops(it["sequences"], it["logits"], tp, pp)
                else:
                    stages = leave_out_statistics(llama_bytes(it["sequences"], it["logits"], tp, pp), it["sequences"], tp, pp)
                return add_kernels(stages, it["logits"], pp)

            lasts = through([round(it["start_s"] * 1e9) for it in timed], [takes(it) for it in timed])
            for iteration, time in zip(timed, lasts):
                expect(f"{rate}, {iteration['name']}", time, round(iteration["duration_s"] * 1e9))
            seen |= {rate, "pipelines" if pp > 1 else ""}
    print(f"{count} files agree: {', '.join(sorted(seen - {''}))}")


if __name__ == "__main__":
    main()
