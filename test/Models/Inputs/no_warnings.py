"""Every model of the library under every strategy of the library that fits it: nothing is warned of.

    no_warnings.py STAGEC STDLIB SCRATCH

Models and strategies are read from the library's files, so that new ones are tried without a word here, or fail here until they have
sizes. Each model trains and infers, with the arguments of VARIANTS besides. Of a strategy each list of arguments is tried. What does not
fit (experts of a dense model, a pipeline of a model without layers) is refused, but each model fits one plan, and each plan one model.
"""
import csv
import io
import re
import subprocess
import sys
from pathlib import Path

stagec, stdlib, scratch = sys.argv[1:4]
PATTERN = '["M", "%s", "M", "*", "%s"]'
SIZES = {"L": 4, "D": 64, "H": 8, "KV": 4, "F": 128, "FE": 32, "FS": 64, "V": 256, "E": 8, "X": 8, "K": 2, "QL": 16, "KL": 8, "R": 4,
         "EV": 8, "dense": 1, "shared": 1, "N": 16, "P": 8, "groups": 4, "MH": 8, "T": 32, "C": 16, "window": 3, "scalar": 8,
         "normed": "true", "Z": 32}
# Beside the sizes without a default.
OWN = {"GPTJ": "turned = 4", "GLM": "groups = 1, turned = 4", "GLMMTP": "groups = 1, turned = 4", "Jamba": "L = 8, N = 4, attention_every = 4, attention_at = 2",
       "Mamba": "Q = 4", "NemotronH": "L = 5, Q = 4, pattern = " + PATTERN % ("-", "M"), "Gemma3": "L = 6", "Nemotron3": "L = 5, Q = 4, pattern = " + PATTERN % ("E", "E"),
       "Nemotron3MTP": "L = 5, Q = 4, pattern = " + PATTERN % ("E", "E"), "T5": "N = 2", "Phi3": "turned = 4"}
VARIANTS = {"GPT": ["joined = true", "fused = true", "packed = false"], "Llama": ["joined = true", "flat = true, joined = true", "packed = false"],
            "T5": ["gated = true"], "DeepSeek": ["nodes = 2", "groups = 4, top_groups = 2"], "GLM": ["groups = 4, top_groups = 2"], "Mixtral": ["physical = 12", "capacity = 1.5"], "Nemotron3": ["Z = none"], "Qwen2": ["tied = true"]}
SAMPLERS = ["Greedy", "VocabularyParallelGreedy", "Random", "TopK"]  # in turn
DIMS = {"SE": 8, "Y": 32, "X": 32}
PLANS = {
    "single": [""],
    "data_parallel": ["dp = 2, bucket = 1KiB, overlap = true"],
    "zero": ["dp = 2, stage = 3, bucket = 1KiB"],
    "fsdp": ["dp = 2, replicas = 2, recompute = true"],
    "ring_attention": ["dp = 2, cp = 2", "cp = 2, uly = 2"],
    "megatron": ["dp = 2, tp = 2", "pp = 2, cp = 2, tp = 2, ring = true", "tp = 2, recompute = selective", "tp = 2, sequence_parallel = false",
                 "pp = 2, dp = 2, recompute = full, zero = 1", "cp = 2, tp = 2, split_caches = true"],
    "megatron_moe": ["dp = 2, tp = 2, ep = 2", "pp = 2, dp = 2, tp = 2, ep = 2, etp = 2, recompute = full", "dp = 2, tp = 2, ep = 2, sequence_parallel = false, physical = 12"],
    "megatron_hierarchical": ["cp_p2p = 2, cp_a2a = 2"],
    "decode_context": ["heads = 2, dcp = 2"],
    "fsdp_experts": ["dp = 4, ep = 2, recompute = true"],
    "deepseek": ["pp = 2, dp = 4, ep = 4", "pp = 2, dp = 4, ep = 4, fp8 = true", "pp = 2, dp = 4, ep = 4, ep_nodes = 2, fp8 = true"],
    "llama3": ["dp = 2, pp = 2, cp = 2, tp = 2"],
    "fsdp_combined": ["replicas = 2, dp = 2, tp = 2, recompute = full", "pp = 2, dp = 2, tp = 2"],
}


def declarations(kind):
    """Name to the parameters without a default, and the body, of each declaration of the library."""
    for path in sorted(Path(stdlib).glob("*.stg")):
        text = re.sub(r"^ *///.*\n", "", path.read_text(), flags=re.MULTILINE)
        for name, head in re.findall(rf"^{kind} (\w+)\(((?:[^()]|\([^()]*\))*)\) {{", text, re.MULTILINE):
            body = text.split(f"\n{kind} {name}(")[1].split("\n}\n")[0]
            head = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", head)
            given = [p.split(":")[0].strip() for p in re.split("[,;]", head) if p.strip() and "=" not in p]
            yield path.stem, name, given, body


def job(model, needed, variant, dims, step, plan, n):
    values = {name: SIZES[name] for name in needed if name != "pattern"}
    for text in filter(None, [OWN.get(model), variant]):
        for name, value in re.findall(r"(\w+) = (\[.*?\]|[^,]+)", text):
            values[name] = value
    sizes = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"job j{n} {{ model = {model}({sizes}); step = {step}({dims}); precision = bf16_mixed; strategy = {plan}; }}\n"


strategies = [name for file, name, *_ in declarations("strategy") if file == "parallel"]  # std.parts has no mesh
assert set(strategies) == set(PLANS), f"plans and strategies differ: {set(strategies) ^ set(PLANS)}"
plans = [f"{name}({arguments})" for name in strategies for arguments in PLANS[name]]
imports = "".join(f"import std.{path.stem};\n" for path in sorted(Path(stdlib).glob("*.stg")) if path.stem != "prelude")
fits = dict.fromkeys(plans, 0)
compiled = faults = models = 0
for file, model, needed, body in declarations("model"):
    models += 1
    text, tried = imports, []
    own = {name for line in re.findall(r"^  dim ([\w, ]+);", body, re.MULTILINE) for name in line.split(", ")}
    more = "".join(f", {name} = {DIMS[name]}" for name in sorted(own - {"B", "S"}))
    steps = [("train", "B = 16" + (", S = 16" if "S" in own else "") + more + ", microbatch = 1, optimizer = adamw")]
    if "  output " in body:
        steps.append(("infer", "B = 16, S = 16" + more + ", for T in 16..18"))
        steps.append(("infer", "B = 16, S = 16" + more + ", chunk = 8, for T in 16..18, sample = " + SAMPLERS[models % len(SAMPLERS)]))
    for variant in ["", *VARIANTS.get(model, [])]:
        for plan in plans:
            for step, dims in steps:
                text += job(model, needed, variant, dims, step, plan, len(tried))
                tried.append((plan, step))
    source = Path(scratch) / f"{model}.stg"
    source.write_text(text)
    result = subprocess.run([stagec, str(source), "--all-jobs", "--report=csv", "-j1"], capture_output=True, text=True)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == len(tried), (model, result.stderr[:2000])
    good = [tried[int(row["job"][1:])] for row in rows if not row["refused_because"]]
    for plan, _ in good:
        fits[plan] += 1
    compiled += len(good)
    if "-v" in sys.argv or {step for _, step in good} != {step for step, _ in steps}:
        print(f"{model}: {len(good)} of {len(rows)}", *{row["refused_because"] for row in rows} - {""}, sep="\n  ")
        faults += {step for _, step in good} != {step for step, _ in steps}
    if result.stderr:
        faults += 1
        print(model, result.stderr, sep="\n")
for plan, count in fits.items():
    if not count:
        faults += 1
        print(f"no model fits {plan}")
print(f"{models} models, {len(plans)} plans, {compiled} jobs compiled, {faults} faults")
