"""Compares when a server is through with requests with the timeline of the traces of its iterations, which say what nodes take alone.

    time.py STAGEC STAGE_TRACE FOLDER
"""

import json
import subprocess
import sys
from pathlib import Path

RUNTIMES = ["free", "launching", "taxing"]
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
        words = []
        # The server waits for surcharges that end an iteration: of a fast rank beside a slow one, and of a wait behind a message. Traces do not.
        for runtime in [runtime for runtime in RUNTIMES if runtime == "free" or (job, runtime) == ("limps", "taxing") or job not in ["limps", "blocking"]]:
            command = [stagec, folder / "job.stg", f"--job={job}", f"--requests={folder / 'requests.jsonl'}", f"-Druntime={runtime}", *options]
            traces = folder / f"{name.replace(' ', '-')}-{runtime}"
            run(*command, "-o", traces, "--times")
            report = json.loads(run(*command, "--report=json"))
            step = next(line for line in run(stage_trace, "timeline", traces).splitlines() if line.startswith("step:"))
            timeline = round(float(step.split()[1].replace(",", "")) * 1000)
            spans[name, runtime] = span = round(report["span_s"] * 1e9)
            # An iteration ends at a whole nanosecond, which is up to one before its last task.
            if not 0 <= timeline - span <= report["iterations"]:
                sys.exit(f"{name}, {runtime}: {span} ns of the server, {timeline} of the timeline")
            if span > spans[name, "free"]:
                words.append(runtime)
        more = ", slower" if name == "limps" and spans[name, "free"] > spans["plain", "free"] else ""
        more += f", {report['blocks_out']} blocks go to the host" if report["blocks_out"] else ""
        print(f"{name}: {report['iterations']} iterations{more}; {' and '.join(words) or 'nothing more'} costs time")
    command = [stagec, folder / "job.stg", "--job=plain", f"--requests={folder / 'requests.jsonl'}", "--iteration-time=1ms", "--report=json"]
    report = json.loads(run(*command))
    more = round(report["span_s"] * 1e9) - spans["plain", "free"]
    print(f"given: {report['iterations']} iterations of {more / report['iterations'] / 1e6:g} ms more")


main()
