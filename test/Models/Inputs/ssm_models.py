"""Parameters and FLOPs of the library's state space models, against published totals and closed forms.

    ssm_models.py stagec scratch-folder

Totals are sums over the published weights. The closed forms are of the chunked algorithm (arXiv 2405.21060, section 6): per token
products in and out, with chunks of Q the scores of a group (Q N), what heads of together I numbers read within a chunk (Q I), write
to a state (I N) and read of one (I N), 2 FLOPs each forward and 4 backward.
"""
import sys

from library_models import report_steps

stagec, scratch = sys.argv[1:]
B, S = 4, 4096
# Numbers that work on one token, in billions, as published, and what of them that leaves out: of Nemotron 3 Nano nothing, or the embedding; of Super
# what predicts further tokens, of whose 2,942,324,736 numbers 490 of 512 experts do not work on a token.
ACTIVE = {"nemotron3_nano": [("3.6", 0), ("3.2", 2688 * 131072)], "nemotron3_super": [("12.77", 2942324736 - 490 * 2 * 1024 * 2688)]}


def mamba2(d, heads, p, groups, n, q):
    i = heads * p
    return d * (2 * i + 2 * groups * n + heads) + i * d + q * groups * n + q * i + 2 * i * n


def mamba(layers, d, heads, v):
    return 6 * B * S * (layers * mamba2(d, heads, 64, 1, 128, 256) + d * v), 0


def mamba1(layers, d, n, r, v):
    """The scan itself is no matrix product."""
    f = 2 * d
    return 6 * B * S * (layers * (3 * d * f + f * (r + 2 * n) + r * f) + d * v), 0


def nemotron():
    attention = 2 * 8192 * 64 * 128 + 2 * 8192 * 8 * 128
    matrices = 54 * mamba2(8192, 256, 64, 8, 256, 128) + 54 * 2 * 8192 * 32768 + 10 * attention + 8192 * 131072
    return 6 * B * S * matrices, 6 * B * 10 * S * S // 2 * 64 * 2 * 128


def nemotron3(d, heads, mamba_heads, x, k, fe, z, numbers, prediction=0):
    """Of M, E and * layers; `prediction` more of the last two, a product of 2 D by D in front of them, and the output layer once more."""
    m, e, a = numbers
    attention = 2 * d * heads * 128 + 2 * d * 2 * 128
    experts = d * x + (2 * d * z if z else 0) + k * 2 * (z or d) * fe + 2 * d * 2 * fe
    matrices = m * mamba2(d, mamba_heads, 64, 8, 128, 128) + (e + prediction) * experts + (a + prediction) * attention
    matrices += prediction * 2 * d * d + (1 + prediction) * d * 131072
    return 6 * B * S * matrices, 6 * B * (a + prediction) * S * S // 2 * heads * 2 * 128


def jamba():
    d, f = 4096, 14336
    mixer = mamba1(1, d, 16, 256, 0)[0] // (6 * B * S)
    attention = 2 * d * 32 * 128 + 2 * d * 8 * 128
    matrices = 28 * mixer + 4 * attention + 16 * 3 * d * f + 16 * (d * 16 + 2 * 3 * d * f) + d * 65536
    return 6 * B * S * matrices, 6 * B * 4 * S * S // 2 * 32 * 2 * 128


MODELS = {
    "jamba_v0_1": ("Jamba", 51570323328, jamba()),
    "mamba_130m": ("Mamba1", 129135360, mamba1(24, 768, 16, 48, 50280)),
    "mamba_2_8b": ("Mamba1", 2768345600, mamba1(64, 2560, 16, 160, 50280)),
    "mamba2_130m": ("Mamba", 128989632, mamba(24, 768, 24, 50288)),
    "mamba2_2_7b": ("Mamba", 2702599680, mamba(64, 2560, 80, 50288)),
    "nemotron3_nano": ("Nemotron3", 31577937344, nemotron3(2688, 32, 64, 128, 6, 1856, None, (23, 23, 6))),
    "nemotron3_super": ("Nemotron3MTP", 123611012096, nemotron3(4096, 32, 128, 512, 22, 2688, 1024, (40, 40, 8), prediction=1)),
    "nemotron_h_56b": ("NemotronH", 56324350464, nemotron()),
}
wrong = 0
for config, report in report_steps(stagec, scratch, ["mamba", "nemotron", "ssm"],
                                   {config: (f"{model}({config})", f"B = {B}, S = {S}") for config, (model, *_) in MODELS.items()}):
    _, parameters, flops = MODELS[config]
    found = report if isinstance(report, str) else (report["parameters"], tuple(report["flops"][kind] for kind in ("contraction", "attention")))
    if found != (parameters, flops):
        print(f"{config}: {found}, not {(parameters, flops)}")
        wrong += 1
        continue
    for digits, without in ACTIVE.get(config, []):
        active = f"{(report['active_parameters'] - without) / 1e9:.{len(digits.partition('.')[2])}f}"
        if active != digits:
            print(f"{config}: {active} billion numbers work on one token, not {digits}")
            wrong += 1
print(f"{len(MODELS)} models, {wrong} faults")
