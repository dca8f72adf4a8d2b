"""Parameters, active parameters and FLOPs of the library's models with experts, against published totals and closed forms.

    moe_models.py stagec scratch-folder

Totals are those of the published weights (sums over safetensors files), without the biases of DeepSeek's and GLM's routers, which
are counted apart. The active ones, which a token uses, have the digits of the papers and model cards: gpt-oss and DeepSeek
count them without the embedding, GLM (and V2-Lite here, whose 2.4 is cut off) without the output layer, too. The closed forms take hyper-parameters from the published configurations; a product of n tokens with a matrix of m numbers costs
2 n m forward and 4 n m backward, attention 2 * pairs * (numbers of a key + of a value) per head forward and twice that backward.
"""
import sys

from library_models import report_steps

stagec, scratch = sys.argv[1:]
B = 4


def causal(s):
    return s * s // 2


def window(s, w):
    return s * w - w * w // 2


def grouped(d, heads, kv, e):
    return 2 * d * heads * e + 2 * d * kv * e


def experts(d, fe, x, k, shared=0):
    """Numbers of the matrices that a token is multiplied with: router, K experts, shared ones."""
    return d * x + (k + shared) * 3 * d * fe


def mla(d, heads, ql, kl, e, r, ev):
    queries = d * ql + ql * heads * (e + r) if ql else d * heads * (e + r)
    return queries + d * (kl + r) + kl * heads * (e + ev) + heads * ev * d


def total(s, matrices, pairs, per_pair):
    return {"contraction": B * s * 6 * matrices, "attention": B * 6 * pairs * per_pair}


def moe(s, layers, d, heads, kv, e, fe, x, k, v, windows=None, shared=0):
    pairs = sum(windows(i) if windows else causal(s) for i in range(layers))
    return total(s, layers * (grouped(d, heads, kv, e) + experts(d, fe, x, k) + shared) + d * v, pairs, heads * 2 * e)


def deepseek(s, layers, dense, d, heads, ql, kl, f, fe, x, k, shared, v, e=128, r=64, ev=128):
    sparse = (layers - dense) * experts(d, fe, x, k, shared)
    matrices = layers * mla(d, heads, ql, kl, e, r, ev) + dense * 3 * d * f + sparse + d * v
    return total(s, matrices, layers * causal(s), heads * (e + r + ev))


def glm(s, layers, dense, d, heads, kv, e, f, fe, x, k, shared, v):
    sparse = (layers - dense) * experts(d, fe, x, k, shared)
    return total(s, layers * grouped(d, heads, kv, e) + dense * 3 * d * f + sparse + d * v, layers * causal(s), heads * 2 * e)


def with_prediction(s, d, main, more):
    """One sparse layer more, a product of 2 D by D in front of it, and the output layer once more."""
    more["contraction"] += B * s * 6 * 2 * d * d
    return {kind: main[kind] + more[kind] for kind in main}


def qwen2_moe(s):
    """Qwen1.5-MoE: beside 4 of 60 experts one of 5,632, of which a token takes a share, a product with one vector."""
    return moe(s, 24, 2048, 16, 16, 128, 1408, 60, 4, 151936, shared=3 * 2048 * 5632 + 2048)


def oss(s):
    return lambda i: causal(s) if i % 2 else window(s, 128)


MODELS = {  # config: model, S, parameters, router biases, active in billions as published, and what of them that leaves out, FLOPs
    "mixtral_8x7b": ("Mixtral", 4096, 46702792704, 0, ("12.9", 0), moe(4096, 32, 4096, 32, 8, 128, 14336, 8, 2, 32000)),
    "qwen3_30b_a3b": ("Qwen3MoE", 4096, 30532122624, 0, ("3", 0), moe(4096, 48, 2048, 32, 4, 128, 768, 128, 8, 151936)),
    "qwen3_235b_a22b": ("Qwen3MoE", 4096, 235093634560, 0, ("22", 0), moe(4096, 94, 4096, 64, 4, 128, 1536, 128, 8, 151936)),
    "gpt_oss_20b": ("GPTOSS", 4096, 20914757184, 0, ("3.61", 201088 * 2880), moe(4096, 24, 2880, 64, 8, 64, 2880, 32, 4, 201088, oss(4096))),
    "gpt_oss_120b": ("GPTOSS", 4096, 116829156672, 0, ("5.13", 201088 * 2880), moe(4096, 36, 2880, 64, 8, 64, 2880, 128, 4, 201088, oss(4096))),
    "deepseek_v2_lite": ("DeepSeek", 2048, 15706484224, 0, ("2", 2 * 102400 * 2048), deepseek(2048, 27, 1, 2048, 16, None, 512, 10944, 1408, 64, 6, 2, 102400)),
    "deepseek_v2": ("DeepSeek", 5120, 235741434880, 0, ("21", 102400 * 5120), deepseek(5120, 60, 1, 5120, 128, 1536, 512, 12288, 1536, 160, 6, 2, 102400)),
    "deepseek_v3": ("DeepSeek", 4096, 671026404352, 58 * 256, ("37", 129280 * 7168), deepseek(4096, 61, 3, 7168, 128, 1536, 512, 18432, 2048, 256, 8, 1, 129280)),
    "deepseek_v3_mtp": ("DeepSeekMTP", 4096, 671026404352 + 11610067968, 59 * 256, None, with_prediction(
        4096, 7168, deepseek(4096, 61, 3, 7168, 128, 1536, 512, 18432, 2048, 256, 8, 1, 129280), deepseek(4096, 1, 0, 7168, 128, 1536, 512, 18432, 2048, 256, 8, 1, 129280))),
    "kimi_k2": ("DeepSeek", 6144, 1026408209408, 60 * 384, ("32", 163840 * 7168), deepseek(6144, 61, 1, 7168, 64, 1536, 512, 18432, 2048, 384, 8, 1, 163840)),
    "glm4_5": ("GLM", 5120, 352797814784, 89 * 160, ("32", 2 * 151552 * 5120), glm(5120, 92, 3, 5120, 96, 8, 128, 12288, 1536, 160, 8, 1, 151552)),
    "glm4_6": ("GLMMTP", 5120, 356785898816 - 90 * 160, 90 * 160, None, with_prediction(
        5120, 5120, glm(5120, 92, 3, 5120, 96, 8, 128, 12288, 1536, 160, 8, 1, 151552), glm(5120, 1, 0, 5120, 96, 8, 128, 12288, 1536, 160, 8, 1, 151552))),
    "deepseek_moe_16b": ("DeepSeekMoE", 4096, 16375728128, 0, ("2.8", 0), glm(4096, 28, 1, 2048, 16, 16, 128, 10944, 1408, 64, 6, 2, 102400)),
    "qwen1_5_moe_a2_7b": ("Qwen2MoE", 3840, 14315784192, 0, ("2.7", 0), qwen2_moe(3840)),
    "glm4_5_air": ("GLM", 4096, 106852245504, 45 * 128, ("12", 2 * 151552 * 4096), glm(4096, 46, 1, 4096, 96, 8, 128, 10944, 1408, 128, 8, 1, 151552)),
}

modules = ["configs", "deepseek", "glm", "gpt_oss", "moe (Mixtral)", "qwen"]
steps = {config: (f"{model}({config})", f"B = {B}, S = {s}") for config, (model, s, *_) in MODELS.items()}
wrong = 0
for config, report in report_steps(stagec, scratch, modules, steps):
    _, _, parameters, buffers, active, flops = MODELS[config]
    if isinstance(report, str):
        print(report)
        wrong += 1
        continue
    found = {"parameters": report["parameters"], "buffers": report["buffers"]}
    expected = {"parameters": parameters, "buffers": buffers}
    for kind in flops:
        found[kind], expected[kind] = report["flops"][kind], flops[kind]
    if active:
        digits, without = active
        expected["active"] = digits
        found["active"] = f"{(report['active_parameters'] - without) / 1e9:.{len(digits.partition('.')[2])}f}"
    if found != expected:
        print(f"{config}: {found}, not {expected}")
        wrong += 1
print(f"{len(MODELS)} models, {wrong} faults")
