"""Arguments -> job -> arguments is the identity on what both can say, for random plans.

Usage: random_arguments.py STAGEC COUNT FOLDER

Each plan is written in the launcher's order, as a command line, as lines of keys and values or in sections of a table, with flags that
change nothing between. What `stagec --as` prints of the imported job must be the arguments without these.
"""

import pathlib
import random
import subprocess
import sys

HEADS, GROUPS, LAYERS = 64, 8, 96


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout, done.stderr


def megatron(rng):
    """Flags with values (None: a word alone), in order."""
    tp, pp, cp = rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4]), rng.choice([1, 2])
    dp, microbatch = rng.choice([1, 2, 4]), rng.choice([1, 2])
    flags = [("WORLD_SIZE", tp * pp * cp * dp), ("--pipeline-model-parallel-size", pp)]
    if pp > 1 and rng.random() < 0.5:
        flags.append(("--num-virtual-stages-per-pipeline-rank", rng.choice([2, 3, 4])))
    flags += [("--context-parallel-size", cp), ("--tensor-model-parallel-size", tp)]
    flags += [("--sequence-parallel", None)] * (rng.random() < 0.7)
    flags += [("--use-distributed-optimizer", None)] * (rng.random() < 0.5)
    flags += [("--overlap-grad-reduce", None)] * (rng.random() < 0.5)
    if rng.random() < 0.3:
        flags.append(("--ddp-bucket-size", rng.randrange(10**6, 10**8)))
    recompute = rng.choice([None, "selective", "full"])
    if recompute:
        flags.append(("--recompute-granularity", recompute))
    if recompute == "full" and rng.random() < 0.5:
        flags.append(("--recompute-num-layers", 2))
    if cp > 1:
        flags += [("--cp-comm-type", "all_gather")] if rng.random() < 0.5 else []
    width = rng.choice([4096, 8192])
    flags += [("--num-layers", LAYERS), ("--hidden-size", width), ("--num-attention-heads", HEADS),
              ("--num-query-groups", GROUPS), ("--ffn-hidden-size", rng.choice([16384, 28672])),
              ("--vocab-size", 131072)]
    flags += [("--kv-channels", 128)] * (width == 4096)
    flags += [("--micro-batch-size", microbatch), ("--global-batch-size", dp * microbatch * 4 * rng.choice([1, 2])),
              ("--seq-length", rng.choice([2048, 4096])), ("--bf16", None)]
    return flags


def torchtitan(rng):
    dp, replicas, microbatch = rng.choice([2, 4, 8]), rng.choice([1, 2]), rng.choice([1, 2])
    p, t = "--parallelism.", "--training."
    flags = [(p + "data_parallel_shard_degree", dp), (p + "data_parallel_replicate_degree", replicas)]
    reshard = rng.choice(["always", "never"])
    flags += [(p + "fsdp_reshard_after_forward", reshard)]
    flags += [("--activation_checkpoint.mode", rng.choice(["full", "none"]))]
    flags += [(t + "local_batch_size", microbatch),
              (t + "global_batch_size", dp * replicas * microbatch * rng.choice([1, 2])),
              (t + "seq_len", rng.choice([2048, 4096])), ("--model.flavor", rng.choice(["8B", "70B"]))]
    return flags


def megatron_bridge_moe(rng):
    """GPT-OSS 20B, which has 24 layers and 32 experts."""
    tp, pp, dp, microbatch = rng.choice([1, 2]), rng.choice([1, 2, 4]), rng.choice([2, 4]), rng.choice([1, 2])
    m, bits = "model.", rng.choice(["8", "4", None])
    flags = [("--recipe", "gpt_oss_20b_pretrain_config"), ("WORLD_SIZE", tp * pp * dp), ("--gpu", rng.choice(["b200", "gb300"] if bits == "4" else ["h100", "b200"])),
             (m + "pipeline_model_parallel_size", pp)]
    if pp > 1 and rng.random() < 0.5:
        flags.append((m + "virtual_pipeline_model_parallel_size", rng.choice([2, 3])))
    flags += [(m + "tensor_model_parallel_size", tp), (m + "expert_model_parallel_size", rng.choice([1, dp])), (m + "expert_tensor_parallel_size", 1)]
    flags += [(m + "sequence_parallel", "true")] * (rng.random() < 0.5)
    if rng.random() < 0.5:
        flags.append((m + "moe_flex_dispatcher_backend", rng.choice(["deepep", "hybridep"])))
    if rng.random() < 0.5:
        flags.append(("ddp.overlap_grad_reduce", rng.choice(["true", "false"])))
    recompute = rng.choice([None, "selective", "full"])
    if recompute:
        flags.append((m + "recompute_granularity", recompute))
    if recompute == "selective":
        modules = ["core_attn", "moe_act", "layernorm"]
        flags.append((m + "recompute_modules", "[" + ",".join(modules[rng.randrange(3):]) + "]"))
    kinds = {"8": "bf16_with_mxfp8_mixed", "4": "bf16_with_nvfp4_mixed", None: "bf16_mixed"}
    flags.append(("mixed_precision", kinds[bits]))
    if bits:
        flags.append((f"mixed_precision.fp{bits}_param_gather", rng.choice(["true", "false"])))
    if bits == "8":
        flags += [(key, rng.choice(["true", "false"])) for key in ("mixed_precision.fp8_dot_product_attention", m + "fp8_output_proj")]
    flags += [("mixed_precision.grad_reduce_in_fp32", rng.choice(["true", "false"])),
              ("optimizer.exp_avg_dtype", rng.choice(["bfloat16", "float32"])),
              ("train.micro_batch_size", microbatch), ("train.global_batch_size", dp * microbatch * 4 * rng.choice([1, 2])),
              (m + "seq_length", rng.choice([2048, 4096]))]
    return flags


IGNORED = {"megatron_lm": [("--lr", "3e-4"), ("--seed", 42), ("--swiglu", None), ("--data-path", "/data/tokens")],
           "megatron_bridge_moe": [("model.cuda_graph_impl", "none"), ("optimizer.lr", "3e-4"), ("model.moe_router_fusion", "true")],
           "torchtitan": [("--metrics.log_freq", 10), ("--training.steps", 1000), ("--model.name", "llama3")]}


def words(flags):
    """As a command line has them."""
    return [f"{key}={value}" if not key.startswith("-") else key if value is None else f"{key} {value}"
            for key, value in flags]


def write(flags, form):
    if form == "words":
        setting, rest = [f for f in flags if not f[0].startswith("-")], [f for f in flags if f[0].startswith("-")]
        return "".join(f"{word} " for word in words(setting)) + "torchrun train.py \\\n  " + " \\\n  ".join(words(rest)) + "\n"
    lines, table = [], {}
    for key, value in flags:
        text = "true" if value is None else f'"{value}"' if isinstance(value, str) else str(value)
        if form == "lines":
            lines.append(f"{key[2:].replace('-', '_') if key.startswith('--') else key}: {text}")
        else:
            section, name = key[2:].split(".")
            table.setdefault(section, []).append(f"{name} = {text}  # as said")
    for section, rows in table.items():
        lines += [f"[{section}]", *rows, ""]
    return "# arguments\n" + "\n".join(lines) + "\n"


def main():
    stagec, count, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(36)
    for number in range(count):
        launcher, make, forms = (("megatron_lm", megatron, ["words", "lines"]),
                                 ("megatron_bridge_moe", megatron_bridge_moe, ["words", "lines"]),
                                 ("torchtitan", torchtitan, ["words", "table"]))[max(number % 4 - 1, 0)]
        flags = make(rng)
        form = rng.choice(forms)
        mixed = list(flags)
        for extra in rng.sample(IGNORED[launcher], 2):
            mixed.insert(rng.randrange(len(mixed) + 1), extra)
        arguments, job = folder / f"{number}.txt", folder / f"{number}.stg"
        arguments.write_text(write(mixed, form))
        run(stagec, "import", f"--launcher={launcher}", arguments, "-o", job, "--force")
        printed, messages = run(stagec, job, f"--as={launcher}")
        said = [f"{key}={value}" for key, value in flags if value is not None] + [key for key, value in flags if value is None]
        found = [line.replace(" ", "=") for line in printed.splitlines()]
        if sorted(found) != sorted(said) or messages:
            sys.exit(f"{arguments}: {sorted(set(found) ^ set(said))}\n{messages}")
    print(f"{count} plans are read and written alike")


main()
