"""Replays jobs in ASTRA-sim and compares the simulator's time with the compiler's.

  replay.py SIMULATOR STAGEC STAGE_TRACE FOLDER [NAME...]

Without ASTRA-sim `timeline` stands for SIMULATOR: then `stage-trace timeline` times the traces of the replay. Per job of replayed-jobs.txt: what the compiler says of a step, what replay.sh takes, and what run.sh takes, which times
communication by rings of messages. The compiler's time is that of `--emit=time`, which `stage-trace timeline` must find of the traces, too. Prints a table, and fails where a replay differs by
more than 1 %.
"""
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[2] / "examples"
simulator, stagec, stage_trace, folder = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
simulator = shutil.which(simulator) or simulator
MOST = 0.01


def run(command, where=None):
    result = subprocess.run([str(word) for word in command], cwd=where, capture_output=True, text=True)
    assert result.returncode == 0, f"{command}: {result.stdout[-300:]}{result.stderr[-1000:]}"
    return result.stdout


def read_step(text):
    """Microseconds of `step: 17,741.151 us on 8 ranks`."""
    return float(re.search(r"^step: ([0-9,.]+) us", text, re.MULTILINE)[1].replace(",", ""))


def simulate(script):
    """Milliseconds; nothing if ranks do not finish."""
    if simulator == "timeline":
        return read_step(run([stage_trace, "timeline", script.parent])) / 1000 if script.name == "replay.sh" else None
    result = subprocess.run([script, simulator], cwd=script.parent, capture_output=True, text=True)
    ends = [int(cycles) for cycles in re.findall(r"finished, (\d+) cycles", result.stdout)]
    return max(ends) / 1e6 if result.returncode == 0 else None


def describe(time, step):
    return f"{time:>10.3f} {time / step - 1:>+8.3%}" if time else f"{'stalls':>10} {'':>8}"


worst, failed = 0, 0
print(f"{'job':<18} {'ranks':>5} {'compiler, ms':>12} {'replay.sh':>10} {'%':>8} {'run.sh':>10} {'%':>8}")
for line in (HERE / "replayed-jobs.txt").read_text().splitlines():
    name, *words = shlex.split(line, comments=True) or [""]
    if not name or (sys.argv[5:] and name not in sys.argv[5:]):
        continue
    program = next(path for path in (HERE / words[0], EXAMPLES / words[0]) if path.exists())
    traces, astra = (folder / name / word for word in ("traces", "astra"))
    run([stagec, program, *words[1:], "--times", "-o", traces, f"--astra-sim={astra}", "--force"])
    step = read_step(run([stage_trace, "timeline", traces])) / 1000
    assert step == read_step(run([stagec, program, *words[1:], "--emit=time"])) / 1000, name
    replayed, simulated = simulate(astra / "replay.sh"), simulate(astra / "run.sh")
    ranks = len(list(traces.glob("*.et")))
    print(f"{name:<18} {ranks:>5} {step:>12.3f} {describe(replayed, step)} {describe(simulated, step)}", flush=True)
    difference = abs(replayed / step - 1) if replayed else 1
    worst = max(worst, difference)
    failed += difference > MOST
    shutil.rmtree(folder / name)
print(f"worst {worst:.3%}, {failed} differ by more than 1 %")
sys.exit(failed > 0)
