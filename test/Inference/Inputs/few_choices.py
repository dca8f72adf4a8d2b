"""Decode steps whose choices of experts are fewer than these, or come out uneven, counted one choice after the other.

    few_choices.py stagec stage-trace scratch-folder

Each rank with tokens of its own, a source, has c choices; all n are numbered, the sources taken in turn, and number k goes to expert k * X / n, rounded down (docs/language, R14.18). What a rank
computes, reads and sends in a layer follows from who gets what: two products of D x FE and one of FE x D on each slot, the weights of experts with a slot, and
the numbers of all slots to experts and back. Every node of every rank is compared.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, stage_trace, scratch = sys.argv[1:]
os.makedirs(scratch, exist_ok=True)
BYTES = 2  # of bf16

MIXTRAL = "Mixtral(mixtral_8x7b, L = 2)", dict(D=4096, FE=14336, X=8, K=2)
LOAD = [5, 0, 1, 1, 2, 0, 0, 7] + [1] * 8 + [0] * 7 + [3]
SMALL = "Mixtral(L = 2, D = 64, H = 8, KV = 4, X = 24, K = 3, FE = 96, V = 256)", dict(D=64, FE=96, X=24, K=3)
LOADED = f"Mixtral(L = 2, D = 64, H = 8, KV = 4, X = 24, K = 3, FE = 96, V = 256, loads = [{LOAD}])", dict(SMALL[1], load=LOAD)
COPIED = "Mixtral(L = 2, D = 64, H = 8, KV = 4, X = 24, K = 3, FE = 96, V = 256)", dict(SMALL[1], X=28)
V3 = "DeepSeek(deepseek_v3, L = 4)", dict(D=7168, FE=2048, X=256, K=8)
# The model, sequences, and what has experts and tokens: data ranks that have copies of the same experts, those that have different ones,
# and parts of each expert.
CASES = [(MIXTRAL, B, "megatron()", 1, 1, 1) for B in (1, 2, 3, 4, 8, 16)]
CASES += [(MIXTRAL, B, "megatron_moe(tp = 4, etp = 4)", 1, 1, 4) for B in (1, 8)]
CASES += [(SMALL, edp * ep * tokens, f"megatron_moe(dp = {edp * ep}, ep = {ep})", edp, ep, 1)
          for edp, ep in ((1, 4), (2, 4), (4, 2), (3, 2)) for tokens in (1, 2, 3, 5, 8)]
# Here all tensor ranks have the same tokens, which need not move.
CASES += [(SMALL, B, "megatron_moe(tp = 8, ep = 8, etp = 1)", 1, 8, 1) for B in (1, 2, 4, 7)]
CASES += [(V3, B, "megatron_moe(dp = 32, ep = 32)", 1, 32, 1) for B in (32, 64, 256, 768, 1024, 4096)]


CASES += [(LOADED, B, "megatron_moe(dp = 4, ep = 4)", 1, 4, 1) for B in (4, 16)]
CASES += [(COPIED, B, "megatron_moe(dp = 4, ep = 4, physical = 28)", 1, 4, 1) for B in (4, 16)]


def apportion(weights, total):
    """The largest remainder method."""
    shares = [total * weight // sum(weights) for weight in weights]
    late = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % sum(weights)))
    for i in late[:total - sum(shares)]:
        shares[i] += 1
    return shares


def deal_out(choices, edp, ep, X):
    """Per source (g, e) and expert how many choices go there."""
    n = choices * edp * ep
    counts = {(g, e): [0] * X for g in range(edp) for e in range(ep)}
    for k in range(n):
        counts[k % edp, k // edp % ep][k * X // n] += 1
    return counts


def check_evenness(counts, choices, X):
    """That this is as even as it can be: for each source, for those that send to the same copies of experts, and for all."""
    groups = [[source] for source in counts] + [[s for s in counts if s[0] == g] for g in {g for g, e in counts}] + [list(counts)]
    for group in groups:
        totals = [sum(counts[source][x] for source in group) for x in range(X)]
        assert sum(totals) == choices * len(group) and max(totals) - min(totals) <= 1, (group, totals)


checked = 0
for number, ((model, sizes), B, strategy, edp, ep, parts) in enumerate(CASES):
    D, FE, X, K = (sizes[name] for name in ("D", "FE", "X", "K"))
    program, traces = os.path.join(scratch, f"job{number}.stg"), os.path.join(scratch, f"traces{number}")
    with open(program, "w") as file:
        print("import std.configs;\nimport std.deepseek;\nimport std.moe;\nimport std.parallel;", file=file)
        print(f"job j {{ model = {model}; step = infer(B = {B}, for T in 100..101); precision = bf16_mixed; strategy = {strategy}; }}", file=file)
    run([stagec, program, "-o", traces])
    assert run([stage_trace, "verify", traces]).startswith("ok")
    senders = ep if "dp = " in strategy else 1
    choices, width = B // (edp * senders) * K, X // ep
    if "load" in sizes:
        counts = {(g, e): apportion(sizes["load"], choices) for g in range(edp) for e in range(senders)}
    else:
        counts = deal_out(choices, edp, senders, X)
        check_evenness(counts, choices, X)
    for rank in range(edp * ep * parts):
        g, e = rank // (ep * parts), rank // parts % ep
        own = [sum(counts[g, other][x] for other in range(senders)) for x in range(e * width, (e + 1) * width)]
        slots, busy = sum(own), sum(1 for number in own if number)
        most = max([choices] + [sum(sum(counts[g, other][x] for other in range(senders)) for x in range(f * width, (f + 1) * width)) for f in range(ep)])
        flops, read, moved = 0, [], []
        for line in run([stage_trace, "dump", "--rank", str(rank), traces]).splitlines():
            found = re.search(r'moe\.\S* .*num_ops=(\d+) tensor_size=(\d+) op_type="(expert_gate_up|contract)"', line)
            if found and (found.group(3) == "expert_gate_up" or re.search(r'\.experts\.\S+ D0|moe\.(routed\.)?y D0', line)):
                flops += int(found.group(1))
                read.append(int(found.group(2)))
            found = re.search(r'COMM_COLL .*moe\..*ALL_TO_ALL comm_size=(\d+)', line)
            if found:
                moved.append(int(found.group(1)))
        layers = len(read) // 2
        part = FE // parts
        up = BYTES * (busy * 2 * D * part + slots * D + 2 * slots * part)
        down = BYTES * (busy * part * D + slots * part + slots * D)
        # What a rank without slots does not do is written as 1 (docs/Traces.md).
        assert layers and read == [up or 1, down or 1] * layers, (model, B, rank, read, up, down)
        assert flops == layers * (3 * 2 * slots * D * part or 2), (model, B, rank, flops)
        assert moved == ([most * D * BYTES] * 2 * layers if senders > 1 else []), (model, B, rank, moved, most)
        checked += 1
print(f"{checked} ranks of {len(CASES)} jobs are as counted")
