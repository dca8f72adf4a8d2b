"""Twice as many requests, each served alone, take twice as much, and traces are as long as reports say.

    twice.py STAGEC STAGE_TRACE FOLDER
"""

import json
import re
import subprocess
import sys
from pathlib import Path

stagec, stage_trace, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
JOB = """
import std.llama;
import std.parallel;
job served {{
  model = Mistral(L = 2, D = 64, H = 8, KV = 4, F = 128, V = 512, window = 20);
  step = infer(S = requests);
  precision = bf16_mixed;
  strategy = megatron(pp = {pp}, tp = 2, sequence_parallel = false);
}}
"""


def run(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def serve(count, pp):
    """FLOPs, what each stage communicates, nodes."""
    (folder / "job.stg").write_text(JOB.format(pp=pp))
    file, traces = folder / f"{count}.jsonl", folder / f"traces{pp}_{count}"
    file.write_text("".join(json.dumps({"arrival": i, "prompt": 33, "output": 9}) + "\n" for i in range(count)))
    report = json.loads(run(stagec, folder / "job.stg", f"--requests={file}", "--iteration-time=1ms", "--chunk=20", "--report=json", "-o", traces))
    ok = re.match(rf"ok: {2 * pp} ranks, (\d+) nodes, (\d+) collectives", run(stage_trace, "verify", traces))
    model, written = report["model"], sum(path.stat().st_size for path in traces.iterdir())
    moved = [entry[of] for stage in model["stages"] for entry in stage["communication"] for of in ("count", "bytes")]
    nodes, bytes_ = model["traces"]["nodes"], model["traces"]["bytes"]
    if (nodes, bytes_) != (int(ok[1]), written):
        sys.exit(f"{count} requests: reported {nodes} nodes and {bytes_} bytes, written {ok[1]} and {written}")
    return [model["flops"]["model"], *moved, nodes]


for pp in (1, 2):
    few, many = serve(40, pp), serve(80, pp)
    print("twice as much" if many == [2 * number for number in few] else f"{few} and then {many}")
