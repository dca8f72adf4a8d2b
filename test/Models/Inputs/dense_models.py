"""Parameters and FLOPs of the library's dense models, against published totals and closed forms.

    dense_models.py stagec scratch-folder

Totals are those of the published weights (the sums over their safetensors files or checkpoints; PaLM: arXiv 2204.02311,
table 1, in billions with two digits, of its matrices without the scales of norms). The closed forms are of the papers' own definitions, and take hyper-parameters from
the published configurations, not from the library: a product of n tokens with a matrix of m numbers costs 2 n m forward
and 4 n m backward, attention 2 * pairs * (numbers of a key + of a value) per head forward and twice that backward.
"""
import sys
from fractions import Fraction

from library_models import report_steps

stagec, scratch = sys.argv[1:]
B, S = 4, 8192


def causal(s):
    return s * s // 2


def window(s, w):
    return causal(s) if w is None or w >= s else s * w - Fraction(w * w, 2)


def attend(areas, heads, width):
    """FLOPs of attention forward and backward, by the pairs of each layer."""
    return 3 * sum(2 * heads * area * 2 * width for area in areas)


def grouped(d, heads, kv, e):
    return 2 * d * heads * e + 2 * d * kv * e


# What a model is made of: numbers of its matrices that are multiplied with every token, and attention of a sequence.
def decoder(layers, d, heads, kv, f, v, e=None, mats=3, windows=lambda i: None):
    e = e or d // heads
    matrices = layers * (grouped(d, heads, kv, e) + mats * d * f) + d * v
    return S * 6 * matrices, attend([window(S, windows(i)) for i in range(layers)], heads, e)


def gemma(every, w):
    return lambda i: None if i % every == every - 1 else w


def bert(layers, d, heads, v):
    per_token = layers * (4 * d * d + 8 * d * d) + d * d + d * v
    return 6 * (S2 * per_token + d * d + 2 * d), attend([S2 * S2] * layers, heads, d // heads)


S2 = 512  # of BERT and T5, whose decoder has T2
T2 = 128


def t5(layers, d, heads, e, f, v, mats=2):
    own = 4 * d * heads * e
    encoder = S2 * layers * (own + mats * d * f)
    cross = T2 * 2 * d * heads * e + S2 * 2 * d * heads * e
    decoder = layers * (T2 * (own + mats * d * f) + cross) + T2 * d * v
    return 6 * (encoder + decoder), attend([S2 * S2, causal(T2), T2 * S2] * layers, heads, e)


def vit(layers, d, heads, patch):
    n = (224 // patch) ** 2
    products = n * 3 * patch * patch * d + (n + 1) * layers * 12 * d * d + d * 1000
    # Pixels need no gradient: the patches have the forward product and the gradient of the weight.
    return 6 * products - 2 * n * 3 * patch * patch * d, attend([(n + 1) ** 2] * layers, heads, d // heads)


TEXT = f"B = {B}, S = {S}"
MODELS = {  # config: model, arguments, step, total, FLOPs
    "gpt2_medium": ("GPT", "rate = 0, fused = true", f"B = {B}, S = 1024", 354823168, None),
    "gpt2_large": ("GPT", "rate = 0, fused = true", f"B = {B}, S = 1024", 774030080, None),
    "llama2_13b": ("Llama", "", TEXT, 13015864320, decoder(40, 5120, 40, 40, 13824, 32000)),
    "llama2_70b": ("Llama", "", TEXT, 68976648192, decoder(80, 8192, 64, 8, 28672, 32000)),
    "llama3_1_405b": ("Llama", "", TEXT, 405853388800, decoder(126, 16384, 128, 8, 53248, 128256)),
    "llama3_2_1b": ("TiedLlama", "", TEXT, 1235814400, decoder(16, 2048, 32, 8, 8192, 128256)),
    "llama3_2_3b": ("TiedLlama", "", TEXT, 3212749824, decoder(28, 3072, 24, 8, 8192, 128256)),
    "mistral_7b": ("Mistral", "", TEXT, 7241732096, decoder(32, 4096, 32, 8, 14336, 32000, windows=lambda i: 4096)),
    "mistral_7b_v0_3": ("Mistral", "", TEXT, 7248023552, decoder(32, 4096, 32, 8, 14336, 32768)),
    "qwen2_5_0_5b": ("Qwen2", "", TEXT, 494032768, decoder(24, 896, 14, 2, 4864, 151936)),
    "qwen2_5_1_5b": ("Qwen2", "", TEXT, 1543714304, decoder(28, 1536, 12, 2, 8960, 151936)),
    "qwen2_5_3b": ("Qwen2", "", TEXT, 3085938688, decoder(36, 2048, 16, 2, 11008, 151936)),
    "qwen2_5_7b": ("Qwen2", "", TEXT, 7615616512, decoder(28, 3584, 28, 4, 18944, 152064)),
    "qwen2_5_14b": ("Qwen2", "", TEXT, 14770033664, decoder(48, 5120, 40, 8, 13824, 152064)),
    "qwen2_5_32b": ("Qwen2", "", TEXT, 32763876352, decoder(64, 5120, 40, 8, 27648, 152064)),
    "qwen2_5_72b": ("Qwen2", "", TEXT, 72706203648, decoder(80, 8192, 64, 8, 29568, 152064)),
    "qwen3_0_6b": ("Qwen3", "", TEXT, 596049920, decoder(28, 1024, 16, 8, 3072, 151936, e=128)),
    "qwen3_1_7b": ("Qwen3", "", TEXT, 1720574976, decoder(28, 2048, 16, 8, 6144, 151936, e=128)),
    "qwen3_4b": ("Qwen3", "", TEXT, 4022468096, decoder(36, 2560, 32, 8, 9728, 151936, e=128)),
    "qwen3_8b": ("Qwen3", "", TEXT, 8190735360, decoder(36, 4096, 32, 8, 12288, 151936, e=128)),
    "qwen3_14b": ("Qwen3", "", TEXT, 14768307200, decoder(40, 5120, 40, 8, 17408, 151936, e=128)),
    "qwen3_32b": ("Qwen3", "", TEXT, 32762123264, decoder(64, 5120, 64, 8, 25600, 151936, e=128)),
    "gemma2_2b": ("Gemma2", "", TEXT, 2614341888, decoder(26, 2304, 8, 4, 9216, 256000, e=256, windows=gemma(2, 4096))),
    "gemma2_9b": ("Gemma2", "", TEXT, 9241705984, decoder(42, 3584, 16, 8, 14336, 256000, e=256, windows=gemma(2, 4096))),
    "gemma2_27b": ("Gemma2", "", TEXT, 27227128320, decoder(46, 4608, 32, 16, 36864, 256000, e=128, windows=gemma(2, 4096))),
    "gemma3_1b": ("Gemma3", "", TEXT, 999885952, decoder(26, 1152, 4, 1, 6912, 262144, e=256, windows=gemma(6, 512))),
    "phi3_mini": ("Phi3", "", TEXT, 3821079552, decoder(32, 3072, 32, 32, 8192, 32064, windows=lambda i: 2047)),
    "phi3_medium": ("Phi3", "", TEXT, 13960238080, decoder(40, 5120, 40, 10, 17920, 32064, windows=lambda i: 2047)),
    "phi4": ("Phi3", "", TEXT, 14659507200, decoder(40, 5120, 40, 10, 17920, 100352)),
    "phi4_mini": ("Phi3", "", TEXT, 3836021760, decoder(32, 3072, 24, 8, 8192, 200064)),
    "falcon_7b": ("Falcon", "", TEXT, 6921720704, decoder(32, 4544, 71, 1, 4 * 4544, 65024, mats=2)),
    "falcon_40b": ("Falcon", "", TEXT, 41303293952, decoder(60, 8192, 128, 8, 4 * 8192, 65024, mats=2)),
    "falcon_180b": ("Falcon", "", TEXT, 178557088768, decoder(80, 14848, 232, 8, 4 * 14848, 65024, mats=2)),
    "gptj_6b": ("GPTJ", "", TEXT, 6050882784, decoder(28, 4096, 16, 16, 4 * 4096, 50400, mats=2)),
    "pythia_160m": ("GPTNeoX", "", TEXT, 162322944, decoder(12, 768, 12, 12, 4 * 768, 50304, mats=2)),
    "pythia_6_9b": ("GPTNeoX", "", TEXT, 6857302016, decoder(32, 4096, 32, 32, 4 * 4096, 50432, mats=2)),
    "gpt_neox_20b": ("GPTNeoX", "", TEXT, 20554567680, decoder(44, 6144, 64, 64, 4 * 6144, 50432, mats=2)),
    "palm_8b": ("PaLM", "", TEXT, (8.63, 33 * 4096), decoder(32, 4096, 16, 1, 4 * 4096, 256000, e=256)),
    "palm_62b": ("PaLM", "", TEXT, (62.50, 65 * 8192), decoder(64, 8192, 32, 1, 4 * 8192, 256000, e=256)),
    "palm_540b": ("PaLM", "", TEXT, (540.35, 119 * 18432), decoder(118, 18432, 48, 1, 4 * 18432, 256000, e=256)),
    "bert_base": ("BERT", "", f"B = {B}, S = {S2}", 110106428, bert(12, 768, 12, 30522)),
    "bert_large": ("BERT", "", f"B = {B}, S = {S2}", 336226108, bert(24, 1024, 16, 30522)),
    "t5_small": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 60506624, t5(6, 512, 8, 64, 2048, 32128)),
    "t5_base": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 222903552, t5(12, 768, 12, 64, 3072, 32128)),
    "t5_large": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 737668096, t5(24, 1024, 16, 64, 4096, 32128)),
    "t5_3b": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 2851598336, t5(24, 1024, 32, 128, 16384, 32128)),
    "t5_11b": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 11307321344, t5(24, 1024, 128, 128, 65536, 32128)),
    "t5_1_1_small": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 76961152, t5(8, 512, 6, 64, 1024, 32128, 3)),
    "t5_1_1_base": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 247577856, t5(12, 768, 12, 64, 2048, 32128, 3)),
    "t5_1_1_large": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 783150080, t5(24, 1024, 16, 64, 2816, 32128, 3)),
    "t5_1_1_xl": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 2849757184, t5(24, 2048, 32, 64, 5120, 32128, 3)),
    "t5_1_1_xxl": ("T5", "", f"B = {B}, S = {T2}, SE = {S2}", 11135332352, t5(24, 4096, 64, 64, 10240, 32128, 3)),
    "vit_b16": ("ViT", "", f"B = {B}, Y = 224, X = 224", 86567656, vit(12, 768, 12, 16)),
    "vit_b32": ("ViT", "", f"B = {B}, Y = 224, X = 224", 88224232, vit(12, 768, 12, 32)),
    "vit_l16": ("ViT", "", f"B = {B}, Y = 224, X = 224", 304326632, vit(24, 1024, 16, 16)),
    "vit_h14": ("ViT", "", f"B = {B}, Y = 224, X = 224", 632045800, vit(32, 1280, 16, 14)),
}

modules = ["bert", "configs", "falcon", "gemma", "llama", "phi", "qwen", "t5", "transformer (GPT, Llama)", "vision"]
steps = {config: (f"{model}({', '.join(filter(None, [config, arguments]))})", step)
         for config, (model, arguments, step, _, _) in MODELS.items()}
wrong = 0
for config, report in report_steps(stagec, scratch, modules, steps):
    total, flops = MODELS[config][3:]
    if isinstance(report, str):
        print(report)
        wrong += 1
        continue
    found = report["parameters"]
    if (round((found - total[1]) / 1e9, 2) != total[0]) if isinstance(total, tuple) else found != total:
        print(f"{config} has {found} parameters, not {total}")
        wrong += 1
    if flops:
        expected = {"contraction": B * flops[0], "attention": B * flops[1]}
        counted = {kind: report["flops"][kind] for kind in expected}
        if counted != expected:
            print(f"{config} has FLOPs {counted}, not {expected}")
            wrong += 1
print(f"{len(MODELS)} models, {wrong} faults")
