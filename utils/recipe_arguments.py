"""Tuned recipes of Megatron-Bridge as arguments, which `stagec import` reads.

  python3 utils/recipe_arguments.py NAME...    prints the arguments of these recipes

benchmarks/measured/megatron_bridge_recipes.json has what recipes assign. A recipe starts from another one, its base. Where the base is in the
file its settings hold, too; the first one that is not in the file becomes --recipe. Helpers and values that are expressions are replaced by
what they do (perf_recipes/_common.py and the common.py of each family). BASES has what the recipes of NVIDIA's library set, but no degrees and
no batch: arguments have to say these.
"""
import json
import math
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "benchmarks", "measured", "megatron_bridge_recipes.json")
MACHINES = ["h100", "b200", "b300", "gb200", "gb300", "vr200", "r100"]

EXPERTS = {"model.expert_tensor_parallel_size": 1, "model.seq_length": 4096}
ADAM = {"optimizer.exp_avg_dtype": "float32"}
EVEN = {"model.account_for_embedding_in_pipeline_split": True, "model.account_for_loss_in_pipeline_split": True}
# src/megatron/bridge/recipes, by the beginning of the name. Where these leave the sequence open, NVIDIA's tables have it.
BASES = {
    "llama3_8b": {"model.seq_length": 8192},
    "llama3_70b": {"model.seq_length": 8192},
    "llama31_405b": {"model.seq_length": 8192, "model.num_layers": 126, **EVEN},
    "nemotronh": {"model.seq_length": 8192},
    "nemotron_3_nano": {**EXPERTS, **ADAM, "model.seq_length": 8192},
    "nemotron_3_super": {**EXPERTS, **ADAM, "model.seq_length": 8192},
    "deepseek_v3": {**EXPERTS, "model.moe_flex_dispatcher_backend": "hybridep", "optimizer.exp_avg_dtype": "bfloat16"},
    "kimi_k2": {**EXPERTS, "optimizer.optimizer": "dist_muon"},
    "qwen3_235b": {**EXPERTS, **ADAM, "model.num_layers": 94, **EVEN},
    "qwen3_30b": {**EXPERTS, **ADAM},
    "gpt_oss": {**EXPERTS, **ADAM, "model.context_parallel_size": 1},
}

EIGHT_BITS = {"fp8_cs": "bf16_with_fp8_current_scaling_mixed", "fp8_mx": "bf16_with_mxfp8_mixed"}
PRECISIONS = {"bf16": "bf16_mixed", "nvfp4": "bf16_with_nvfp4_mixed", **EIGHT_BITS}
IN_16_BITS = {"mixed_precision.fp8_param_gather": False, "mixed_precision.fp4_param_gather": False}
# Layers of each virtual stage but the last, by the number of stages.
LAYOUTS = {4: "Et*16|(t*16|)*2t*13{}L", 8: "Et*8|(t*8|)*6t*5{}L", 16: "Et*4|(t*4|)*14t{}L", 32: "Et|(tt|)*30{}L"}

PAGED = {"model.moe_flex_dispatcher_backend": "hybridep", "model.moe_paged_stash": True}
FULL_PRECISION_STATES = {"optimizer.exp_avg_dtype": "float32", "optimizer.exp_avg_sq_dtype": "float32"}
REDUCED_IN_16_BITS = {"mixed_precision.grad_reduce_in_fp32": False}
# What helpers set of a plan.
HELPERS = {
    "_benchmark_common": REDUCED_IN_16_BITS,
    "_llama_benchmark_common": REDUCED_IN_16_BITS,
    "_deepseek_v3_common": {"model.recompute_granularity": "selective"},
    "_enable_deepseek_full_iteration_mxfp8": PAGED,
    "_apply_deepseek_v3_64gpu_gb300_fsdp_configs": {"ddp.use_megatron_fsdp": True},
    "_enable_hybridep_full_iteration_mxfp8": {"model.moe_paged_stash": True, "mixed_precision.fp8_dot_product_attention": True},
    "_apply_gpt_oss_120b_full_iter_fp8mx_configs": PAGED,
    "_apply_nemotron_3_nano_perf_defaults": {"model.seq_length": 8192, **FULL_PRECISION_STATES},
    "_apply_nemotron_3_super_perf_defaults": {"ddp.overlap_grad_reduce": True, **FULL_PRECISION_STATES, **REDUCED_IN_16_BITS},
}

# What helpers are told.
SWITCHES = {"fp8_dot_product_attention": "mixed_precision.fp8_dot_product_attention", "fp8_output_proj": "model.fp8_output_proj"}


def expand(key, value):
    """The settings that stand for one, whose value may be an expression."""
    if not isinstance(value, str) or not value.startswith("="):
        return {key: value}
    text = value[1:]
    if key == "mixed_precision":
        kind = "nvfp4" if "nvfp4" in text else "fp8_mx" if "fp8mx" in text else re.search(r"'(\w+)'", text)[1]
        return {key: PRECISIONS[kind], **REDUCED_IN_16_BITS, **({} if "_perf_precision" in text else IN_16_BITS)}
    if key == "comm_overlap":
        return {f"comm_overlap.{name}": word == "True" for name, word in re.findall(r"(\w+)=(\w+)", text)}
    if key == "dataset.seq_length":
        return {}
    if key == "model.pipeline_model_parallel_layout":
        stages, virtual = map(int, re.findall(r"\d+", text.split("layout")[1]))
        return {key: LAYOUTS[stages * virtual].format("")}
    return {key: text.removeprefix("torch.")}


def resolve(recipes, name):
    """The first base that is not in the file, and all settings."""
    recipe = recipes[name]
    called = re.fullmatch(r"_with_global_batch_size\((\w+)\(\), (\d+)\)", recipe["base"])
    inner = called[1] if called else re.match(r"\w+", recipe["base"])[0]
    if inner in recipes:
        base, settings = resolve(recipes, inner)
    else:
        base, settings = inner, {}
        for begin, known in BASES.items():
            if inner.removeprefix("_build_").startswith(begin):
                settings = dict(known)
    if called:
        settings["train.global_batch_size"] = int(called[2])
    calls = [(re.match(r"\w+", call)[0], call) for call in recipe.get("calls", [])]
    for helper, call in calls:
        settings.update(HELPERS.get(helper, {}))
        settings.update({SWITCHES[key]: value == "True" for key, value in re.findall(r"(\w+)=(True|False)", call) if key in SWITCHES})
    for key, value in recipe.get("set", {}).items():
        settings.update(expand(key, value))
    for helper, call in calls:
        if helper == "set_deepseek_v3_pipeline_model_parallel_layout":
            said = re.search(r"'([^']+)'", call)
            stages = settings.get("model.pipeline_model_parallel_size", 1) * (settings.get("model.virtual_pipeline_model_parallel_size") or 1)
            settings["model.pipeline_model_parallel_layout"] = said[1] if said else LAYOUTS.get(stages, "").format("m")
    return base, settings


def simplify(settings):
    """Settings in the words that launchers have, as Megatron-Bridge itself understands them."""
    settings = {key: value for key, value in settings.items() if value is not None and value not in ("", "none", [])}
    # A flag of either name sets both (MixedPrecisionConfig.__setattr__, in training/mixed_precision.py).
    for bits in ("fp8", "fp4"):
        if f"mixed_precision.{bits}_param" in settings:
            settings[f"mixed_precision.{bits}_param_gather"] = settings.pop(f"mixed_precision.{bits}_param")
    if settings.pop("mixed_precision.fp8_recipe", "") == "blockwise":
        settings["mixed_precision"] = "bf16_with_fp8_subchannel_scaling_mixed"
    # What overlaps communication decides what gradients do (comm_overlap.py).
    if "comm_overlap.overlap_grad_reduce" in settings:
        settings["ddp.overlap_grad_reduce"] = settings.pop("comm_overlap.overlap_grad_reduce")
    return settings


def count_ranks(name, settings):
    """Of the name, or what the degrees need: two recipes of 64 GPUs have degrees for more."""
    named = re.search(r"_(\d+)gpu_", name)
    def get(*parts):
        sizes = [settings.get(f"model.{part}_parallel_size", 1) for part in parts]
        return math.prod(size for size in sizes if isinstance(size, int))

    return max(int(named[1]) if named else 1, get("pipeline_model") * max(get("tensor_model", "context"), get("expert_model", "expert_tensor")))


def write(value):
    if isinstance(value, list):
        return "[" + ",".join(map(str, value)) + "]"
    return json.dumps(value) if isinstance(value, bool) else str(value)


def read_table(path=TABLE):
    with open(path) as file:
        return json.load(file)["recipes"]


def get_arguments(recipes, name):
    """The launcher of a recipe, its base, and its arguments, one a line."""
    base, settings = resolve(recipes, name)
    settings = simplify(settings)
    machine = re.search(r"gpu_([a-z]+\d+)_", name)
    lines = [f"--recipe={base}", f"WORLD_SIZE={count_ranks(name, settings)}"]
    if machine and machine[1] in MACHINES:
        lines.append(f"--gpu={machine[1]}")
    lines += [f"{key}={write(value)}" for key, value in settings.items()]
    dense = re.match(r"_*(build_)?(llama|nemotronh)", base)
    return "megatron_bridge" if dense else "megatron_bridge_moe", base, lines


if __name__ == "__main__":
    table = read_table()
    for recipe in sys.argv[1:]:
        print("\n".join(get_arguments(table, recipe)[2]))
