"""Compares when a server is through with requests with the timeline of the traces of its iterations.

    time.py STAGEC STAGE_TRACE FOLDER
"""

import json
import subprocess
import sys
from pathlib import Path

RATES = ["--flops=1TFLOP/s", "--memory=100GB/s", "--link=10GB/s", "--latency=2us", "--copy=20MB/s"]
CASES = [("plain", "plain", []), ("limps", "limps", []),
         ("swaps", "plain", ["--block=4", "--cache-blocks=9", "--preempt=swap"]),
         ("states", "states", ["--block=4", "--cache-blocks=9", "--preempt=swap", "--max-sequences=2", "--token-budget=8"]),
         ("piped swaps", "piped", ["--block=4", "--cache-blocks=18", "--preempt=swap", "--max-sequences=2", "--token-budget=8"]),
         ("piped", "piped", ["--max-sequences=2", "--token-budget=8"]), ("sampled", "sampled", []), ("blocking", "blocking", []),
         ("chunks of windows", "windows", ["--chunk=8"]), ("piped windows", "piped_windows", []), ("two units that load", "loads", ["--token-budget=40"]),
         ("few positions", "positions", []), ("shards of an odd budget", "sequences", ["--token-budget=101"])]


def run(*arguments):
    return subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True).stdout


def main():
    stagec, stage_trace, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    spans = {}
    for name, job, options in CASES:
        command = [stagec, folder / "job.stg", f"--job={job}", f"--requests={folder / 'requests.jsonl'}", *options, *RATES]
        run(*command, "-o", folder / name.replace(" ", "-"))
        report = json.loads(run(*command, "--report=json"))
        step = run(stage_trace, "timeline", folder / name.replace(" ", "-"), *RATES).splitlines()[0]
        timeline = round(float(step.split()[1].replace(",", "")) * 1000)
        spans[name] = round(report["span_s"] * 1e9)
        # An iteration ends at a whole nanosecond, which is up to one before its last task.
        if not 0 <= timeline - spans[name] <= report["iterations"]:
            sys.exit(f"{name}: {spans[name]} ns of the server, {timeline} of the timeline")
        more = ", slower" if name == "limps" and spans[name] > spans["plain"] else ""
        more += f", {report['blocks_out']} blocks go to the host" if report["blocks_out"] else ""
        print(f"{name}: {report['iterations']} iterations{more}")


main()
