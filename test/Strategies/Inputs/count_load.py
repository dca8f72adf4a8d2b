"""Counts by hand what experts that are not equally busy compute, send and hold on each rank, and compares traces and report with it.

    count_load.py stagec stage-trace jobs.stg job scratch-folder

The job has layers 0, 1, ... with the loads of LOADS in turn, on ranks (dp, ep), each of which has the same number of tokens. What is counted here
follows from the definitions alone: a rank's choices are dealt out by the largest remainder method, rank (d, e) has the
experts of block e, and gets what all ranks (d, *) send to these.
"""
import json
import os
import re
import sys
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, stage_trace, program, job, folder = sys.argv[1:]
text = open(program).read()
LOADS = json.loads(re.search(r"// LOADS (.*)", text).group(1))
L, D, X, K, FE, DP, EP, TOKENS, STEPS = (int(re.search(r"// %s (\d+)" % name, text).group(1))
                                         for name in "L D X K FE DP EP TOKENS MICROBATCHES".split())


def deal_out(weights, total):
    exact = [Fraction(total * weight, sum(weights)) for weight in weights]
    shares = [int(number) for number in exact]
    late = sorted(range(len(weights)), key=lambda i: shares[i] - exact[i])
    for i in late[: total - sum(shares)]:
        shares[i] += 1
    return shares


choices = TOKENS * K
shares = [deal_out(LOADS[i % len(LOADS)], choices) for i in range(L)]
assert all(sum(of_layer) == choices for of_layer in shares)
width = X // EP
# Of a layer, on the ranks (*, e) and for one microbatch: the slots of their experts.
slots = [[EP * sum(of_layer[e * width:(e + 1) * width]) for e in range(EP)] for of_layer in shares]
BYTES = 2  # of bf16

run([stagec, program, "--job", job, "--tracker", "-o", folder])
assert "finishes with buffered and with waiting sends" in run([stage_trace, "verify", folder])
report = json.loads(run([stagec, program, "--job", job, "--report=json"]))
products, sent, received = [0] * EP, [0] * EP, 0
for rank in range(DP * EP):
    e = rank % EP
    flops = [0] * L
    for line in run([stage_trace, "dump", "--rank", str(rank), folder]).splitlines():
        # The products: `layers.0.moe.experts.a F0` and so on, with the gradients of both operands.
        found = re.search(r'COMP "layers\.(\d+)\.moe\.(?:experts\.\S+|y) [FB]\d+".* num_ops=(\d+) .*op_type="(?:contract|expert_gate_up)', line)
        if found:
            flops[int(found.group(1))] += int(found.group(2))
        found = re.search(r'COMM_COLL "layers\.(\d+)\.[^"]*all_to_all ([FB]\d+)".* comm_size=(\d+) .*inputs=\["[^"]*", "(\d+)"\] outputs=\["[^"]*", "(\d+)"\]', line)
        if found:
            layer = int(found.group(1))
            most = max(choices, *slots[layer])
            assert int(found.group(3)) == most * D * BYTES, line
            # What a tensor takes is the rank's own: before and behind, in one of the two directions.
            held = sorted([int(found.group(4)), int(found.group(5))])
            assert held == sorted([choices * D * BYTES, slots[layer][e] * D * BYTES]), (line, slots[layer][e])
            received += 1
            if rank < EP:
                sent[e] += int(found.group(4))
        # What forward keeps of experts is as large as their slots: the gate with what it multiplies, and both together.
        found = re.search(r'COMP "layers\.(\d+)\.moe\.experts\.(a|h) F\d+".* outputs=\[([^\]]*)\]', line)
        if found:
            kept = [int(size) for size in re.findall(r', "(\d+)"', found.group(3))]
            assert kept == [slots[int(found.group(1))][e] * FE * BYTES] * {"a": 2, "h": 1}[found.group(2)], line
    # Three products, each once forward and twice backward.
    expected = [3 * 3 * 2 * of_layer[e] * D * FE * STEPS for of_layer in slots]
    assert flops == expected, (rank, flops, expected)
    products[e] += sum(flops)
assert received == DP * EP * L * 4 * STEPS  # to the experts and back, forward and backward
# All ranks together compute what they would if all experts were equally busy.
assert sum(products) == 3 * 3 * 2 * DP * EP * choices * D * FE * L * STEPS
stage, = report["stages"]
rows = [entry for entry in stage["communication"] if entry["operation"] == "all_to_all"]
assert [(row["subject"], row["phase"]) for row in rows] == [("tokens", "forward"), ("tokens", "backward")]
assert rows[0]["bytes"] == rows[1]["bytes"]
expected = [2 * D * BYTES * STEPS * sum(choices + of_layer[e] for of_layer in slots) for e in range(EP)]
assert expected == sent
assert (sum(row["bytes"] for row in rows), sum(row.get("least_bytes", row["bytes"]) for row in rows)) == (max(sent), min(sent))
assert sum(row["agreed_bytes"] for row in rows) == 4 * D * BYTES * STEPS * sum(max(choices, *of_layer) for of_layer in slots)
busy = [sum(of_layer[e] for of_layer in slots) for e in range(EP)]
most, all_of_them = stage["most_expert_flops"], stage["expert_flops"]
assert most * DP * sum(busy) == all_of_them * max(busy), (most, all_of_them, busy)
times = 1000 * max(busy) * EP // sum(busy)
print("imbalance %d.%03d: traces and report are as counted" % (times // 1000, times % 1000))
