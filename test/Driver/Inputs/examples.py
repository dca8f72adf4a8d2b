"""Compiles, proves and verifies every job of every example; a word on the error output fails.

    examples.py STAGEC STAGE-TRACE FOLDER SCRATCH [all]
"""

import csv
import io
import shutil
import subprocess
import sys
from pathlib import Path

stagec, stage_trace, folder, scratch = sys.argv[1:5]
# Traces of as many ranks with fewer layers and microbatches, where the job's own would fill the disk.
SMALLER = {"llama3_70b": ["-D", "L=4", "-D", "B=64"], "llama3_70b_inference": ["-D", "L=8"], "llama3_8b": ["-D", "L=4"],
           "llama3_8b_long": ["-D", "L=2", "-D", "B=4"], "deepseek_v3_serving": ["-D", "L=4", "-D", "B=64"]}
if sys.argv[5:] == ["all"]:  # of 80 layers, which takes half a minute
    del SMALLER["llama3_70b_inference"]
# Two jobs that belong together are made smaller in a copy.
SMALLER_POOLS = {"deepseek_v3_serving": [("DeepSeek(deepseek_v3)", "DeepSeek(deepseek_v3, L = 4)"), ("4Ki..4196", "4Ki..4098"), ("B = 1152", "B = 144"), ("microbatch = 8", "microbatch = 1")]}
# Plans of thousands of ranks: proofs and traces of the same strategy over a few.
FEWER_RANKS = {"deepseek_v3": ["pp=2", "strategy.dp=4", "ep=4", "nodes=2", "ep_nodes=2", "L=4", "split=[2,2]", "B=16"],
               "llama3_405b": ["dp=2", "pp=2", "tp=2", "L=6", "split=[1,2,2,1]", "B=8"],
               "plan_405b": ["gpus=8", "pp=2", "tp=2", "L=6", "B=8"],
               "qwen3_235b": ["pp=2", "strategy.dp=4", "tp=2", "ep=4", "L=4", "B=16"]}


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0 or result.stderr:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    return result.stdout


jobs = 0
for path in sorted(Path(folder).rglob("*.stg")):
    assert path.read_text().startswith("//! "), f"{path} does not say what it shows"
    fewer = [f"-D{value}" for value in FEWER_RANKS.get(path.stem, [])]
    if fewer:
        assert "refused" not in run(stagec, str(path), "--all-jobs", "--report"), path
    for row in csv.DictReader(io.StringIO(run(stagec, str(path), "--all-jobs", "--report=csv", *fewer))):
        job = "--job=" + row["job"]
        if "serves requests" in row["refused_because"]:  # of a file, a few of whose iterations are enough; another job of the example is proved
            traces = Path(scratch) / f"{path.stem}.{row['job']}"
            run(stagec, str(path), job, f"--requests={folder}/requests_10min.jsonl", "--iteration-time=25ms", "--iterations=0..20", "-D", "L=4", "-o", str(traces))
            assert run(stage_trace, "verify", str(traces)).startswith("ok: 8 ranks"), path
            print(f"{path.name}: {row['job']}")
            continue
        if "another one has prefilled" in row["refused_because"]:
            proof = run(stagec, str(path), job, "--prove")
            assert proof.count(": proved on mesh") == 2, (path, proof)
            text = path.read_text()
            for long, short in SMALLER_POOLS.get(path.stem, []):
                assert text.count(long), (path, long)
                text = text.replace(long, short)
            copy, traces = Path(scratch) / path.name, Path(scratch) / f"{path.stem}.{row['job']}"
            copy.write_text(text)
            run(stagec, str(copy), job, "-o", str(traces))
            assert run(stage_trace, "verify", str(traces)).startswith("ok: "), path
            shutil.rmtree(traces)
            jobs += 1
            print(f"{path.name}: {row['job']}")
            continue
        assert not row["refused_because"], (path, row)
        proof = run(stagec, str(path), job, *fewer, "--prove")
        assert "\nproved on mesh" in proof, (path, proof)
        traces = Path(scratch) / f"{path.stem}.{row['job']}"
        run(stagec, str(path), job, *SMALLER.get(path.stem, []), *fewer, "-o", str(traces))
        verdict = run(stage_trace, "verify", str(traces))
        assert verdict.startswith(f"ok: {row['ranks']} rank"), (path, verdict)
        shutil.rmtree(traces)
        jobs += 1
        print(f"{path.name}: {row['job']}")
print(f"{jobs} jobs")
