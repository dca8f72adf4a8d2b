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
(folder / "job.stg").write_text("""
import std.llama;
import std.parallel;
job served {
  model = Mistral(L = 2, D = 64, H = 8, KV = 4, F = 128, V = 512, window = 20);
  step = infer(S = requests);
  precision = bf16_mixed;
  strategy = megatron(tp = 2, sequence_parallel = false);
}
""")


def run(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def serve(count):
    """FLOPs, collectives, bytes that they put in, nodes."""
    file, traces = folder / f"{count}.jsonl", folder / f"traces{count}"
    file.write_text("".join(json.dumps({"arrival": i, "prompt": 33, "output": 9}) + "\n" for i in range(count)))
    report = json.loads(run(stagec, folder / "job.stg", f"--requests={file}", "--iteration-time=1ms", "--chunk=20", "--report=json", "-o", traces))
    ok = re.match(r"ok: 2 ranks, (\d+) nodes, (\d+) collectives", run(stage_trace, "verify", traces))
    model, written = report["model"], sum(path.stat().st_size for path in traces.iterdir())
    reduced = model["stages"][0]["communication"][0]
    nodes, bytes_ = model["traces"]["nodes"], model["traces"]["bytes"]
    if (nodes, bytes_) != (int(ok[1]), written):
        sys.exit(f"{count} requests: reported {nodes} nodes and {bytes_} bytes, written {ok[1]} and {written}")
    return model["flops"]["model"], reduced["count"], reduced["bytes"], nodes


few, many = serve(40), serve(80)
print("twice as much" if many == tuple(2 * number for number in few) else f"{few} and then {many}")
