"""The FLOPs of published models are those of the literature, however the work is split.

    every_split.py stagec stage-trace jobs.stg scratch-folder

`MODEL` is Megatron-LM's count for a step (3 x forward, 2 per multiply-add, causal attention halved, logits included, no
recomputation). A fused attention's backward computes the scores again, 2 per pair, head and element, on half of the
square: B S S D per layer, if the heads have D elements together. Each combination of degrees must give these integers:
none of them is forbidden by a model, as 4 divides the (key/value) heads, the layers and half of the sequence.

For some of them the traces of all ranks are written, too: `num_ops` of contractions and attention add up to the same
and what the padding of the vocabulary to a multiple of 128 tp adds to the logits and their two gradients.
"""
import itertools
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

stagec, stage_trace, program, scratch = sys.argv[1:]
# job: B of the figure, S, L, D, FLOPs of a step, which is the figure without what a double loses of it
MODEL = {
    "llama2_7b_step": (1, 4096, 32, 4096, 175569673125888),
    "llama3_8b_step": (1, 8192, 32, 4096, 421645529382912),
    "gpt3_175b_step": (1536, 2048, 96, 12288, 3340597800160198656),
}
VOCABULARY = {"llama2_7b_step": 32000, "llama3_8b_step": 128256, "gpt3_175b_step": 51200}
PUBLISHED = {
    "llama2_7b_step": 175569673125888.0,
    "llama3_8b_step": 421645529382912.0,
    "gpt3_175b_step": 3.3405978001601987e+18,
}


# Degrees and sequence parallelism of what is written, and the operators that count.
TRACED = [(1, 1, 1, 1, "false"), (2, 2, 2, 2, "true"), (1, 4, 4, 1, "false"), (4, 1, 1, 4, "true"), (1, 2, 4, 4, "true")]
COUNTED = {"linear", "linear_t", "contract", "qkv", "head_qkv", "gate_up", "attention", "head_attention"}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def sum_of_traces(job, values, batch):
    """Over all ranks. Two microbatches of a large batch: more make large traces, and no other work."""
    folder = f"{scratch}/{job}-" + "-".join(str(value) for value in values.values())
    shutil.rmtree(folder, ignore_errors=True)
    microbatch = max(1, batch // values["dp"] // 2)
    run([stagec, program, "--job", job, "--report=json", "-o", folder, f"-Dmicrobatch={microbatch}"]
        + [f"-D{name}={value}" for name, value in values.items()])
    ops = run([stage_trace, "stats", "--json", "--ops", folder])["ops"]
    shutil.rmtree(folder)
    return sum(op["flops"] for op in ops if op["op_type"].split(".")[0] in COUNTED)


def check(combination):
    """What is wrong with a combination, or nothing."""
    job, dp, tp, pp, cp, sp = combination
    batch, sequence, layers, width, model = MODEL[job]
    values = {"dp": dp, "tp": tp, "pp": pp, "cp": cp, "sequence_parallel": sp}
    # One sequence cannot be split over dp: as many as ranks then, of which each costs the same.
    times = 1 if batch % dp == 0 else dp
    if times > 1:
        values["B"] = batch * times
    # Exact integers: attention is the products of queries with keys and of scores with values, forward and backward.
    pairs = batch * times * layers * width * sequence * sequence
    padding = 6 * batch * times * sequence * width * (-VOCABULARY[job] % (128 * tp))
    expected = {"model": model * times, "attention": 6 * pairs, "contraction": model * times - 6 * pairs,
                "recomputed": pairs}
    command = [stagec, program, "--job", job, "--report=json"] + [f"-D{name}={value}" for name, value in values.items()]
    report = run(command)
    if report["ranks"] != dp * tp * pp * cp:
        return f"{' '.join(command)}\n{report['ranks']} ranks"
    found = {kind: report["flops"][kind] for kind in expected}
    if found != expected or report["padding_flops"]["model"] != padding:
        return f"{' '.join(command)}\nFLOPs {found},\nexpected {expected}"
    if combination[1:] in TRACED:
        total = sum_of_traces(job, values, batch * times)
        if total != model * times + pairs + padding:
            return f"{' '.join(command)}\ntraces: {total} FLOPs, expected {model * times + pairs + padding}"
        traced.append(combination)
    return None


for job, published in PUBLISHED.items():
    if float(MODEL[job][-1]) != published:
        sys.exit(f"{job}: the integer is not the figure")
traced = []
degrees = list(itertools.product((1, 2, 4), repeat=4))
combinations = [(job, *degree, sp) for job in MODEL for degree in degrees for sp in ("true", "false")]
with ThreadPoolExecutor(2) as pool:
    faults = [fault for fault in pool.map(check, combinations) if fault]
print(*faults[:3], sep="\n", end="\n" if faults else "")
print(f"{len(combinations) - len(faults)} of {len(combinations)} combinations have the FLOPs of the literature")
print(f"so have the traces of {len(traced)}")
sys.exit(bool(faults))
