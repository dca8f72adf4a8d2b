"""How much longer a step takes by traces of `--streams=one` than by traces with streams, on ranks with one place for communication.

    streams_one.py STAGEC STAGE-TRACE PROGRAM SCRATCH JOB ...

Such ranks take traces with streams as they stand (`stage-trace timeline --streams=one`), where these finish so.
"""

import re
import subprocess
import sys

stagec, stage_trace, program, scratch, *jobs = sys.argv[1:]
RATES = ["--flops=989e12FLOP/s", "--memory=3.35e12B/s", "--link=50e9B/s", "--latency=1us"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def measure(job, *streams):
    """Microseconds of a step on ranks with one place, and what `verify` says."""
    traces = f"{scratch}/{job}.{len(streams)}"
    run(stagec, program, f"--job={job}", "-o", traces, *streams)
    step = run(stage_trace, "timeline", traces, "--streams=one", *RATES).splitlines()[0]
    return float(re.match(r"step: ([\d,.]+) us", step)[1].replace(",", "")), run(stage_trace, "verify", traces)


for job in jobs:
    (apart, verdict), (one, merged_verdict) = measure(job), measure(job, "--streams=one")
    assert "with streams and without" in verdict, verdict
    assert "finishes" in merged_verdict and "with streams" not in merged_verdict, merged_verdict
    print(f"{job}: {one / apart:.2f} times")
