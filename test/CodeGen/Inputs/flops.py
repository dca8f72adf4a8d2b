"""FLOPs three ways: a closed form, the report, and the sum of `num_ops` over the traces of all ranks.

    flops.py stagec stage-trace jobs.stg scratch-folder

The closed forms are those of the literature (Narayanan et al. 2021 for GPT): 2 per multiply-add, backward twice
forward, a causal triangle of side S as S*S/2. A fused backward computes the scores again: 2 per pair, head and element.
"""
import itertools
import json
import shutil
import sys

from commands import run

stagec, stage_trace, program, scratch = sys.argv[1:]
L, D, H, KV, F, V, S = 4, 64, 8, 4, 256, 512, 64
E = D // H


def llama(tokens):
    sequences = tokens // S
    linear = tokens * (L * 2 * (D * H * E + 2 * D * KV * E + H * E * D + 3 * D * F) + 2 * D * V)
    pairs = sequences * L * H * S * S // 2
    return {"contraction": 3 * linear, "attention": 3 * 4 * pairs * E, "recomputed": 2 * pairs * E}


def gpt(tokens):
    fused = llama(tokens)
    linear = tokens * (L * 2 * (4 * D * D + 2 * D * F) + 2 * D * V)
    # Scores and their product with the values are contractions over all pairs where they are not fused.
    scores = (tokens // S) * L * H * S * S * 4 * E
    return {"contraction": 3 * (linear + scores), "attention": 0, "recomputed": 0}, \
        {"contraction": 3 * linear, "attention": fused["attention"], "recomputed": fused["recomputed"]}


COUNTED = {"linear", "linear_t", "contract", "qkv", "head_qkv", "gate_up", "scores", "mix", "attention", "head_attention"}
OTHERS = {"add", "rms_norm", "layer_norm", "rope", "swiglu", "gelu", "dropout", "lookup", "row_max", "slice", "update",
          "exp_sum_and_pick", "mean_loss", "causal_softmax", "send", "recv", "all_gather", "all_reduce",
          "reduce_scatter"}


def is_counted(op_type):
    """Contractions and attention; `contract` is a formula in place, `linear.dw` a gradient of `linear`. An operator
    nobody thought of is an error, not zero."""
    name = op_type.split(".")[0]
    if name not in COUNTED | OTHERS:
        sys.exit(f"is '{op_type}' a contraction?")
    return name in COUNTED


checked = 0
degrees = [(dp, tp, pp, cp, sp) for dp, tp, pp, cp in itertools.product((1, 2, 4), repeat=4)
           if (dp + tp + pp + cp) % 3 == 0 or dp * tp * pp * cp in (1, 16, 256) for sp in ("true", "false")]
for job, fused in (("llama", None), ("gpt", "false"), ("gpt", "true")):
    for dp, tp, pp, cp, sp in degrees:
        microbatches = 2
        values = {"dp": dp, "tp": tp, "pp": pp, "cp": cp, "sequence_parallel": sp, "B": dp * microbatches}
        if fused:
            values["fused"] = fused
        shutil.rmtree(scratch, ignore_errors=True)
        command = [stagec, program, "--job", job, "-o", scratch, "--report=json"]
        command += [f"-D{name}={value}" for name, value in values.items()]
        flops = json.loads(run(command))["flops"]
        tokens = values["B"] * S
        expected = llama(tokens) if job == "llama" else gpt(tokens)[fused == "true"]
        for kind, number in expected.items():
            if flops[kind] != number:
                sys.exit(f"{' '.join(command)}\nreport: {flops[kind]} FLOPs of {kind}, expected {number}")
        ops = json.loads(run([stage_trace, "stats", "--json", "--ops", scratch]))["ops"]
        total = sum(op["flops"] for op in ops if is_counted(op["op_type"]))
        if total != sum(expected.values()):
            sys.exit(f"{' '.join(command)}\ntraces: {total} FLOPs, expected {sum(expected.values())}")
        checked += 1
shutil.rmtree(scratch, ignore_errors=True)
print(f"{checked} sets of traces have the FLOPs of the closed form")
