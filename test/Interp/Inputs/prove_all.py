"""Proves every strategy of std.parallel on all model families; of experts on those that have some. (Examples: Driver/examples.test.)

    prove_all.py stagec root folder [config ...]      with configs: of these models alone

Fails if a proof fails, or if std.parallel has a strategy that is not in ARGUMENTS.
"""
import re
import subprocess
import sys
from pathlib import Path

# Strategy: argument lists that together use all it can do.
ARGUMENTS = {
    "single": [""],
    "data_parallel": ["dp = 2", "dp = 3"],
    "megatron": [
        "tp = 2",
        "tp = 2, sequence_parallel = false",
        "cp = 2",
        "pp = 2, pipeline_schedule = gpipe",
        "pp = 2, dp = 2, tp = 2",
        "pp = 2, dp = 2, cp = 2, tp = 2",
        "pp = 2, dp = 2, cp = 2, tp = 2, sequence_parallel = false",
        "pp = 4, tp = 2",
        "pp = 2, dp = 2, cp = 2, tp = 2, zero = 1",
        "dp = 2, cp = 2, zero = 2",
        "pp = 2, dp = 2, tp = 2, zero = 3",
        "pp = 2, cp = 4, tp = 2, ring = true, zero = 1",
        "pp = 4, dp = 2, tp = 2, zero = 1, pipeline_schedule = dualpipe",
        "cp = 2, tp = 2, cp_comm = a2a",
    ],
    "megatron_moe": [
        "dp = 2, ep = 2",
        "dp = 2, tp = 2, ep = 2, etp = 2, zero = 1",
        "pp = 2, dp = 2, cp = 2, tp = 2, ep = 4, zero = 1",
    ],
    "megatron_hierarchical": ["cp_p2p = 2, cp_a2a = 2", "pp = 2, cp_p2p = 2, cp_a2a = 2, tp = 2, zero = 1"],
    "fsdp_experts": ["dp = 4, ep = 2"],
    "deepseek": ["pp = 2, dp = 4, ep = 2, recompute = false"],  # with: Strategies/experts-deepseek.stg
    "llama3": ["dp = 2, pp = 2, cp = 2, tp = 2", "dp = 2, pp = 2, cp = 1, tp = 2, chunks = 2, zero = 1, overlap = false"],
    "decode_context": ["heads = 2, dcp = 2", "dcp = 4"],
    "ring_attention": ["cp = 4", "dp = 2, cp = 4, uly = 2"],
    "zero": ["dp = 2", "dp = 3, stage = 2", "dp = 2, stage = 3", "dp = 2, stage = 3, keep = true"],
    "fsdp_combined": ["replicas = 2, dp = 2, cp = 2, tp = 2", "pp = 2, dp = 2, tp = 2"],
    "fsdp": ["dp = 2", "dp = 2, keep = false", "dp = 2, replicas = 2, keep = true"],
}
# Of inference alone, of models with fewer heads of keys and values than of queries.
INFERENCE = ("decode_context",)
EXPERTS = [("moe", "Mixtral", "mixtral_8x7b")]
MODELS = [("transformer", "GPT", "gpt2"), ("transformer", "GPT", "gpt3_175b"), ("transformer", "Llama", "llama2_7b"),
          ("transformer", "Llama", "llama3_8b")] + EXPERTS


def list_models(strategy):
    if strategy in INFERENCE:
        return MODELS[-2:]
    return EXPERTS if strategy in ("megatron_moe", "fsdp_experts", "deepseek") else MODELS


def list_jobs():
    """Of each strategy under each list of arguments, on each model: a name, the text of a program with one job, and options."""
    for strategy, lists in ARGUMENTS.items():
        for arguments in lists:
            step = "infer(B = 48, S = 1024, for T in 1024..1027)" if strategy in INFERENCE else "train(B = 48, S = 1024, microbatch = 1, optimizer = adamw)"
            for library, model, config in list_models(strategy):
                # Blocks of keys go round where attention takes them so, which is one op then.
                fused = ", fused = true" if model == "GPT" and any(word in strategy + arguments for word in ("ring", "cp_comm", "hierarchical")) else ""
                text = (f"import std.configs ({config});\nimport std.{library} ({model});\n"
                        f"import std.parallel ({strategy});\nimport std.schedules (gpipe, dualpipe);\n"
                        f"job prove {{\n  model = {model}({config}{fused});\n"
                        f"  step = {step};\n"
                        f"  precision = bf16_mixed;\n  strategy = {strategy}({arguments});\n}}\n")
                # Four stages stay four: with two every stage is at an end, and its only neighbour is the other.
                yield f"{strategy}({arguments}) of {config}", text, ["-D", "strategy.pp=4"] if "pp = 4" in arguments else []


def prove(stagec, path, defines=()):
    run = subprocess.run([stagec, str(path), "--prove", *defines], capture_output=True, text=True)
    if run.returncode or not re.search(r"^proved on mesh", run.stdout, re.MULTILINE):
        sys.exit(f"{path.read_text()}\n{run.stdout}{run.stderr}")
    print(run.stdout.splitlines()[-1])


def main():
    stagec, root, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    strategies = set(re.findall(r"^strategy (\w+)", (root / "stdlib/parallel.stg").read_text(), re.MULTILINE))
    if strategies != set(ARGUMENTS):
        sys.exit(f"std.parallel has {sorted(strategies)}, and this test proves {sorted(ARGUMENTS)}")
    path, configs = folder / "job.stg", sys.argv[4:]
    for name, text, defines in list_jobs():
        if configs and name.rsplit(" ", 1)[1] not in configs:
            continue
        path.write_text(text)
        prove(stagec, path, defines)


if __name__ == "__main__":
    main()
