"""Decode steps of state space models against closed forms: FLOPs of one token per sequence, and bytes of states.

A token costs two FLOPs per parameter that multiplies it. A layer keeps, however long a sequence is, a state of N numbers in f32 per
channel, and of the inputs of its convolutions, over W tokens, the last W - 1 in bf16: arXiv 2312.00752, section 3.3.2, and 2405.21060,
section 7. Attention of hybrids keeps keys and values of all positions.
"""
import json
import os
import subprocess
import sys

stagec, scratch = sys.argv[1:]
B, W = 32, 4


def mamba2(D, H, P, N, groups=1):
    channels = H * P + 2 * groups * N
    return D * (H * P + channels + H) + H * P * D, 4 * H * P * N + 2 * (W - 1) * channels


def mamba1(D, F, N, R):
    return 2 * D * F + F * (R + 2 * N) + R * F + F * D, 4 * F * N + 2 * (W - 1) * F


def attention(D, H, KV, E):
    return 2 * D * (H + KV) * E, 2 * H * 2 * E, 2 * 2 * KV * E  # products, FLOPs and bytes per position


def alone(L, D, V, layer):
    products, state = layer
    return L * products + D * V, L * state, 0, 0


def jamba(L, D, H, KV, F, X, K, V, N=16):
    products, state = mamba1(D, 2 * D, N, -(-D // 16))
    heads, flops, position = attention(D, H, KV, D // H)
    attending, experts = L // 8, L // 2
    feed = experts * (D * X + K * 3 * D * F) + (L - experts) * 3 * D * F
    return ((L - attending) * products + attending * heads + feed + D * V, (L - attending) * state, attending * flops,
            attending * position)


def nemotron_h(D, H, KV, E, F, V, MH, P, groups, N, states, attending, feeds):
    products, state = mamba2(D, MH, P, N, groups)
    heads, flops, position = attention(D, H, KV, E)
    return (states * products + attending * heads + feeds * 2 * D * F + D * V, states * state, attending * flops,
            attending * position)


models = {
    "Mamba(mamba2_130m)": alone(24, 768, 50288, mamba2(768, 24, 64, 128)),
    "Mamba(mamba2_2_7b)": alone(64, 2560, 50288, mamba2(2560, 80, 64, 128)),
    "Mamba1(mamba_2_8b)": alone(64, 2560, 50280, mamba1(2560, 5120, 16, 160)),
    "Jamba(jamba_v0_1)": jamba(32, 4096, 32, 8, 14336, 16, 2, 65536),
    "NemotronH(nemotron_h_56b)": nemotron_h(8192, 64, 8, 128, 32768, 131072, 256, 64, 8, 256, 54, 10, 54),
}

os.makedirs(scratch, exist_ok=True)
program = os.path.join(scratch, "steps.stg")
with open(program, "w") as file:
    for module in ("mamba", "ssm"):
        print(f"import std.{module};", file=file)
    for i, model in enumerate(models):
        for T in (4096, 8192):
            print(f"job job{i}_{T} {{ model = {model}; step = infer(B = {B}, for T in {T - 1}..{T}); precision = bf16_mixed; }}", file=file)

bad = 0
for i, (model, (products, state, attends, position)) in enumerate(models.items()):
    for T in (4096, 8192):
        report = json.loads(subprocess.run([stagec, program, f"--job=job{i}_{T}", "--report=json"], capture_output=True, text=True, check=True).stdout)
        caches = sum(stage["memory"]["caches"] for stage in report["stages"])
        for what, found, expected in (("contraction", report["flops"]["contraction"], 2 * products * B),
                                      ("attention", report["flops"]["attention"], attends * T * B),
                                      ("caches", caches, (state + position * T) * B)):
            if found != expected:
                print(f"{model}: {what} {found}, expected {expected}")
                bad += 1
print(f"{len(models)} models, {bad} differ")
