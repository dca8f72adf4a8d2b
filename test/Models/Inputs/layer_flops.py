"""FLOPs of models with experts, latent attention and states, layer kind by layer kind, against closed forms of their papers.

    layer_flops.py stagec scratch-folder

Each model is compiled with several numbers of layers of each kind. With as many variants as it has kinds, and one more, whose numbers are
linearly independent, equal totals say that a layer of each kind costs what its form says, and so do embedding and output layer. Of a step
of T tokens of sequences of S, a product with a matrix of m numbers costs 2 T m forward and 4 T m backward; attention 2 FLOPs per
pair, head and number of a key and of a value, S^2 / 2 pairs of a causal sequence (S w - w^2 / 2 within a window w), and twice that backward. Sizes are those
of the published configurations:

    Mixtral 8x7B      arXiv 2401.04088: 2 of 8 experts, each three matrices, and a router
    DeepSeek-V3       arXiv 2412.19437: latent attention; three dense layers, then 8 of 256 experts and a shared one
    gpt-oss-120b      arXiv 2508.10925: layers with a window of 128 and without; 4 of 128 experts
    Nemotron-H 56B    arXiv 2504.03624: Mamba-2 (arXiv 2405.21060, section 6, chunks of Q), attention, feed-forwards of two matrices
    Nemotron 3 Super  its model card: Mamba-2, attention, 22 of 512 experts that work in a space of 1,024, and a shared one
    Jamba v0.1        arXiv 2403.19887: Mamba (arXiv 2312.00752), whose scan is no product, or attention; a feed-forward, or 2 of 16 experts
"""
import sys

from library_models import report_steps

stagec, scratch = sys.argv[1:]
B, S = 4, 8192
CAUSAL = S * S // 2


def attention(d, heads, kv, e, pairs=CAUSAL):
    return 2 * d * heads * e + 2 * d * kv * e, pairs * heads * 2 * e


def experts(d, fe, x, k, shared=0, matrices=3):
    return d * x + (k + shared) * matrices * d * fe


def mamba2(d, heads, groups, n, q):
    inner = heads * 64
    return d * (2 * inner + 2 * groups * n + heads) + inner * d + q * groups * n + q * inner + 2 * inner * n


def layer(*parts):
    """What a layer is made of: numbers of matrices, or these and what attention costs besides."""
    parts = [part if isinstance(part, tuple) else (part, 0) for part in parts]
    return tuple(sum(part[i] for part in parts) for i in (0, 1))


MLA = (7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168, CAUSAL * 128 * (192 + 128))
OSS_EXPERTS = experts(2880, 2880, 128, 4)
LATENT = 4096 * 512 + 2 * 4096 * 1024 + 22 * 2 * 1024 * 2688 + 2 * 4096 * 5376
JAMBA_MAMBA = 3 * 4096 * 8192 + 8192 * (256 + 32) + 256 * 8192
JAMBA_ATTENTION = attention(4096, 32, 8, 128)
JAMBA_MLP, JAMBA_MOE = 3 * 4096 * 14336, experts(4096, 14336, 16, 2)


def pattern(letters):
    return f"L = {len(letters)}, pattern = [{', '.join(chr(34) + letter + chr(34) for letter in letters)}]"


def counts(letters):
    return {letter: letters.count(letter) for letter in set(letters)}


def hybrid(*all_letters):
    return [(pattern(letters), counts(letters)) for letters in all_letters]


MODELS = {  # config: model, numbers of the output layer, kinds, variants: arguments and how many layers of each kind
    "mixtral_8x7b": ("Mixtral", 4096 * 32000, {"sparse": layer(attention(4096, 32, 8, 128), experts(4096, 14336, 8, 2))},
                     [("L = 1", {"sparse": 1}), ("L = 3", {"sparse": 3})]),
    "deepseek_v3": ("DeepSeek", 7168 * 129280, {"dense": layer(MLA, 3 * 7168 * 18432), "sparse": layer(MLA, experts(7168, 2048, 256, 8, 1))},
                    [("L = 2, dense = 1", {"dense": 1, "sparse": 1}), ("L = 3, dense = 2", {"dense": 2, "sparse": 1}),
                     ("L = 5, dense = 1", {"dense": 1, "sparse": 4})]),
    "gpt_oss_120b": ("GPTOSS", 2880 * 201088, {
        "window": layer(attention(2880, 64, 8, 64, S * 128 - 128 * 128 // 2), OSS_EXPERTS), "full": layer(attention(2880, 64, 8, 64), OSS_EXPERTS)},
        [("L = 1", {"window": 1}), ("L = 2", {"window": 1, "full": 1}), ("L = 3, full_every = 3", {"window": 2, "full": 1})]),
    "nemotron_h_56b": ("NemotronH", 8192 * 131072, {"M": layer(mamba2(8192, 256, 8, 256, 128)), "*": layer(attention(8192, 64, 8, 128)), "-": layer(2 * 8192 * 32768)},
                       hybrid("M", "M*", "M-", "MM*--")),
    "nemotron3_super": ("Nemotron3", 4096 * 131072, {"M": layer(mamba2(4096, 128, 8, 128, 128)), "*": layer(attention(4096, 32, 2, 128)), "E": layer(LATENT)},
                        hybrid("M", "M*", "ME", "EMM*E")),
    "jamba_v0_1": ("Jamba", 4096 * 65536, {
        "mamba": layer(JAMBA_MAMBA, JAMBA_MLP), "mamba, experts": layer(JAMBA_MAMBA, JAMBA_MOE),
        "attention": layer(JAMBA_ATTENTION, JAMBA_MLP), "attention, experts": layer(JAMBA_ATTENTION, JAMBA_MOE)}, [
            ("L = 1", {"mamba": 1}), ("L = 2", {"mamba": 1, "mamba, experts": 1}), ("L = 5", {"mamba": 2, "mamba, experts": 2, "attention": 1}),
            ("L = 2, attention_every = 2, attention_at = 1", {"mamba": 1, "attention, experts": 1}), ("L = 3", {"mamba": 2, "mamba, experts": 1})]),
}
# The layers that Nemotron 3 Super's config has for predicting further tokens are those of another model.
CONFIGS = {"nemotron3_super": "nemotron3_nano, D = 4Ki, Z = 1Ki, X = 512, K = 22, FE = 2_688, FS = 5_376, MH = 128"}

steps = {f"{config}_{i}": (f"{model}({CONFIGS.get(config, config)}, {arguments})", f"B = {B}, S = {S}")
         for config, (model, _, _, variants) in MODELS.items() for i, (arguments, _) in enumerate(variants)}
wrong = 0
for name, report in report_steps(stagec, scratch, ["configs", "deepseek", "gpt_oss", "mamba", "moe (Mixtral)", "nemotron", "ssm"], steps):
    config, i = name.rsplit("_", 1)
    _, head, kinds, variants = MODELS[config]
    products = head + sum(kinds[kind][0] * n for kind, n in variants[int(i)][1].items())
    pairs = sum(kinds[kind][1] * n for kind, n in variants[int(i)][1].items())
    expected = {"contraction": 6 * B * S * products, "attention": 6 * B * pairs}
    found = report if isinstance(report, str) else {kind: report["flops"][kind] for kind in expected}
    if found != expected:
        print(f"{name}: {found}, not {expected}")
        wrong += 1
print(f"{len(MODELS)} models, {sum(len(kinds) for _, _, kinds, _ in MODELS.values())} kinds of layers, {wrong} faults")
