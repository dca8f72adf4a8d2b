"""Reads tuned recipes as arguments of Megatron-Bridge, and counts what became of them.

Usage: recipes.py STAGEC RECIPES.json FOLDER [PATTERN]

A recipe starts from another one, its base. Where that is in the file its settings hold, too; the first one that is not in the file is the
recipe of --recipe. The library's precision is bf16 throughout, because it has none of 8 or 4 bits: the script says so by -D. Where no
recipe says it, one rank has an expert's width, as in the library's recipes, and a sequence has 8,192 tokens with Llama 3 and Nemotron, else
4,096, as in NVIDIA's tables.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

MACHINES = ["h100", "b200", "b300", "gb200", "gb300"]


def resolve(recipes, name):
    """The first base that is not in the file, and all settings."""
    if name not in recipes:
        return name, {}
    base, settings = resolve(recipes, recipes[name]["base"])
    return base, {**settings, **recipes[name]["set"]}


def write(value):
    return json.dumps(value) if isinstance(value, bool) else str(value)


def main():
    stagec, data, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    recipes = json.loads(pathlib.Path(data).read_text())["recipes"]
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = collections.Counter()
    pattern = sys.argv[4] if len(sys.argv) > 4 else ""
    for name in recipes:
        if not re.search(pattern, name):
            continue
        base, settings = resolve(recipes, name)
        dense = re.match(r"_*(build_)?(llama|nemotronh)", base)
        settings.setdefault("model.seq_length", 8192 if re.search("llama|nemotron", base) else 4096)
        gpus, machine = re.search(r"_(\d+)gpu_", name), re.search(r"gpu_([a-z]+\d+)_", name)
        if not dense:
            settings.setdefault("model.expert_tensor_parallel_size", 1)
        arguments = folder / f"{name}.txt"
        lines = [f"--recipe={base}"] + [f"WORLD_SIZE={gpus[1]}"] * bool(gpus) + ["ddp.use_distributed_optimizer=true"]
        lines += [f"{key}={write(value)}" for key, value in settings.items() if value is not None and value != "none"]
        arguments.write_text("\n".join(lines) + "\n")
        command = [stagec, "import", "--launcher=megatron_bridge" + ("" if dense else "_moe"), arguments,
                   "-o", folder / f"{name}.stg", "--force", "-D", "precision=bf16_mixed"]
        if machine and machine[1] in MACHINES:
            command += ["-D", f"machine={machine[1]}"]
        done = subprocess.run(command, capture_output=True, text=True)
        message = done.stderr.splitlines()[0] if done.returncode else ""
        code = re.search(r"\[([a-z-]+)\]$", message)
        tuned = base in message or base in done.stderr
        outcome = "job" if not message else f"{code[1] if code else message}"
        if message and not tuned:
            outcome += ", and the base is not named"
        if re.search("peft|lora|sft", name):
            outcome = "adapters or fine-tuning: " + outcome
        outcomes[outcome] += 1
        if pattern:
            print(f"{name}: {outcome}")
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:4} {outcome}")


main()
