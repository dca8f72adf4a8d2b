"""Decode steps of published models against closed forms: FLOPs of one token per sequence, and bytes of caches per position.

A token costs two FLOPs per parameter that multiplies it, and attention 2 FLOPs per number of the keys and values of every
position that it sees, its own among them. What is looked up, added or normalised is not a product.
"""
import json
import os
import subprocess
import sys

stagec, scratch = sys.argv[1:]
B, T = 32, 4096  # sequences, and positions that the step sees


def llama(L, D, H, KV, F, V, E=None, window=T):
    E = E or D // H
    layer = D * H * E + 2 * D * KV * E + H * E * D + 3 * D * F
    return L * layer + D * V, L * 2 * min(T, window) * H * 2 * E, L * 2 * KV * E


def mixtral(L, D, H, KV, X, K, FE, V):
    E = D // H
    layer = D * H * E + 2 * D * KV * E + H * E * D + D * X + K * 3 * D * FE
    return L * layer + D * V, L * 2 * T * H * 2 * E, L * 2 * KV * E


def deepseek(L, D, H, QL, KL, E, R, EV, F, FE, X, K, V, dense, shared):
    # DeepSeek-V2 (arXiv 2405.04434), section 2.1, with the matrices of keys and values applied to queries and results.
    attention = D * QL + QL * H * (E + R) + D * (KL + R) + H * E * KL + H * KL * EV + H * EV * D
    experts = D * X + (shared + K) * 3 * D * FE
    products = L * attention + dense * 3 * D * F + (L - dense) * experts + D * V
    return products, L * 2 * T * H * (2 * KL + R), L * (KL + R)


# The config, the closed form, and what is published of the cache: bytes of a position in bf16.
models = {
    "Llama(llama3_8b)": (llama(32, 4096, 32, 8, 14336, 128256), 131072),
    "Llama(llama3_70b)": (llama(80, 8192, 64, 8, 28672, 128256), 327680),
    "Mistral(mistral_7b)": (llama(32, 4096, 32, 8, 14336, 32000, window=4096), None),
    "Qwen2(qwen2_5_7b)": (llama(28, 3584, 28, 4, 18944, 152064), None),
    "Mixtral(mixtral_8x7b)": (mixtral(32, 4096, 32, 8, 8, 2, 14336, 32000), None),
    "DeepSeek(deepseek_v3)": (deepseek(61, 7168, 128, 1536, 512, 128, 64, 128, 18432, 2048, 256, 8, 129280, 3, 1), 70272),
}

os.makedirs(scratch, exist_ok=True)
program = os.path.join(scratch, "steps.stg")
with open(program, "w") as file:
    for module in ("configs", "deepseek", "llama", "moe", "qwen", "transformer"):
        print(f"import std.{module};", file=file)
    for i, model in enumerate(models):
        print(f"job job{i} {{ model = {model}; step = infer(B = {B}, for T in {T - 1}..{T}); precision = bf16_mixed; }}", file=file)

bad = 0
for i, (model, ((products, attention, cache), published)) in enumerate(models.items()):
    report = json.loads(subprocess.run([stagec, program, f"--job=job{i}", "--report=json"], capture_output=True, text=True, check=True).stdout)
    caches = sum(stage["memory"]["caches"] for stage in report["stages"])
    for what, found, expected in (("contraction", report["flops"]["contraction"], 2 * products * B),
                                  ("attention", report["flops"]["attention"], attention * B),
                                  ("caches", caches, 2 * cache * B * T),
                                  ("published", 2 * cache, published or 2 * cache)):
        if found != expected:
            print(f"{model}: {what} {found}, expected {expected}")
            bad += 1
print(f"{len(models)} models, {bad} differ")
