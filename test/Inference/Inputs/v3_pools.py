"""The pools of examples/deepseek_v3_serving.stg by the sizes of DeepSeek-V3 (arXiv 2412.19437, section 4.2): bytes of weights on a rank, what a rank puts into each
all_to_all, and the FLOPs of products of a prefill of 8 sequences and of a decode step.

    v3_pools.py stagec deepseek_v3_serving.stg
"""
import json
import subprocess
import sys

L, DENSE, D, H, QL, KL, E, R, EV, F, FE, X, K, V = 61, 3, 7168, 128, 1536, 512, 128, 64, 128, 18432, 2048, 256, 8, 129280
SPARSE, PHYSICAL, EXPERT = L - DENSE, 288, 3 * D * FE


def weights(ranks, tp):
    """Numbers times bytes: routers are in f32. Heads, feed-forwards and vocabulary are split over tp, experts over all ranks; latent vectors and norms are not."""
    vocabulary = -(-V // (128 * tp)) * 128 * tp
    attention = D * QL + D * (KL + R) + (QL * H * (E + R) + KL * H * (E + EV) + H * EV * D) // tp
    norms = 2 * D + QL + KL
    dense = 3 * D * F // tp
    sparse = EXPERT // tp + PHYSICAL // ranks * EXPERT
    return 2 * (2 * vocabulary * D // tp + D + L * (attention + norms) + DENSE * dense + SPARSE * sparse) + 4 * SPARSE * D * X


def products(tokens, logits):
    """Two FLOPs per number of a matrix and token. (Those of keys and values a decode step applies to queries and results: as many numbers.)"""
    attention = D * QL + QL * H * (E + R) + D * (KL + R) + KL * H * (E + EV) + H * EV * D
    layers = L * attention + DENSE * 3 * D * F + SPARSE * (D * X + (K + 1) * EXPERT)
    return 2 * (tokens * layers + logits * D * V)


stagec, program = sys.argv[1:]
parts = json.loads(subprocess.run([stagec, program, "--job=serve", "--report=json"], capture_output=True, text=True, check=True).stdout)["parts"]
for part, ranks, tp, tokens, logits, units in ((parts[0], 32, 4, 8 * 4096, 8, 144), (parts[1], 144, 1, 1152, 1152, 100)):
    (stage,) = part["stages"]
    moved = next(of for of in part["phases"][0]["communication"] if of["operation"] == "all_to_all")
    found = (part["ranks"], stage["memory"]["parameters"], part["parameters"], moved["group"], moved["most_count"], moved["most_bytes"],
             part["flops"]["contraction"])
    # What a token of a rank is sent for it gets back: two all_to_alls of each layer with experts.
    put_in = tokens // ranks * K * D * 2
    model = V * D * 2 + D + L * (D * QL + D * (KL + R) + QL * H * (E + R) + KL * H * (E + EV) + H * EV * D + 2 * D + QL + KL) + DENSE * 3 * D * F + SPARSE * (D * X + (X + 1) * EXPERT)
    expected = (ranks, weights(ranks, tp), model, ranks, 2 * SPARSE, 2 * SPARSE * put_in, units * products(tokens, logits))
    assert found == expected, (found, expected)
    print(f"{ranks} ranks with {PHYSICAL // ranks} experts of a layer each: {expected[1]:,} bytes of weights, {put_in:,} bytes into an all_to_all")
