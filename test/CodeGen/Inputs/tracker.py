"""Memory from the lists `inputs` and `outputs` of the traces, as a tracking simulator would count it, against the report.

    tracker.py stagec stage-trace jobs.stg scratch-folder

To the byte: parameters, gradients and optimizer states, which are tensors that nobody writes; what a microbatch keeps
for backward, which is what forward made, received or was given and backward reads; and the peak of a walk over the
nodes in their order, where what a unit receives is there when the unit before begins.
"""
import itertools
import json
import re
import shutil
import sys

from commands import run

stagec, stage_trace, program, scratch = sys.argv[1:]


def read_nodes(rank):
    """(unit, inputs, outputs) of each node; the lists as [(name, bytes)]."""
    nodes = []
    for line in run([stage_trace, "dump", "--rank", str(rank), scratch]).splitlines():
        if match := re.search(r'^\d+ (\w+) ".* (\w+)" .* inputs=(\[.*\]) outputs=(\[.*\])$', line):
            lists = []
            for text in match[3], match[4]:
                words = json.loads(text)
                lists.append([(words[i], int(words[i + 1])) for i in range(0, len(words), 2)])
            nodes.append((match[2], match[1] == "COMM_RECV", *lists))
    units = list(dict.fromkeys(unit for unit, *_ in nodes))
    when = {unit: at for at, unit in enumerate(units)}
    return sorted(nodes, key=lambda node: (when[node[0]] - 1, 0) if node[1] else (when[node[0]], 1))


def measure(nodes):
    written, last_read, sizes = set(), {}, {}
    for at, (_, _, inputs, outputs) in enumerate(nodes):
        for name, size in inputs + outputs:
            sizes[name] = size
        for name, _ in inputs:
            last_read[name] = at
        written.update(name for name, _ in outputs)
    static = {kind: sum(sizes[name] for name in sizes if name[0] == letter and name not in written)
              for kind, letter in (("parameters", "p"), ("gradients", "g"), ("optimizer", "s"))}
    unread = written - set(last_read)
    if unread:
        sys.exit(f"nobody reads {sorted(unread)}")
    others = {name[0] for name in sizes if name not in written} - set("pgsi")
    if others:
        sys.exit(f"nobody writes tensors of kind {others}")
    early = {name for name in sizes if name not in written and name[0] == "i" and name.split()[1] != "0"}
    if early:
        sys.exit(f"inputs {early} are there before the unit before theirs")
    live = peak = sum(size for name, size in sizes.items() if name not in written)
    for at, (_, _, inputs, outputs) in enumerate(nodes):
        live += sum(size for _, size in outputs)
        peak = max(peak, live)
        live -= sum(size for name, size in inputs if last_read[name] == at)
    if live:
        sys.exit(f"{live} bytes are live at the end")
    saved = {name for unit, _, inputs, _ in nodes if unit == "B0" for name, _ in inputs
             if name.endswith(" F0") or name[0] == "i"}
    return static, sum(sizes[name] for name in saved), peak


checked = 0
jobs = ("llama", "gpt", "universal")
for job, pp, tp, cp, dp, sp in itertools.product(jobs, (1, 2), (1, 2), (1, 2), (1, 2), ("true", "false")):
    shutil.rmtree(scratch, ignore_errors=True)
    command = [stagec, program, "--job", job, f"-Dpp={pp}", f"-Dtp={tp}", f"-Dcp={cp}", f"-Ddp={dp}", f"-DB={3 * dp}",
               f"-Dsequence_parallel={sp}", "--tracker", "-o", scratch, "--report=json"]
    stages = json.loads(run(command))["stages"]
    run([stage_trace, "verify", scratch])
    for rank in range(pp * tp * cp * dp):
        memory = stages[rank // (tp * cp * dp)]["memory"]
        static, saved, peak = measure(read_nodes(rank))
        for kind, size in static.items():
            if size != memory[kind]:
                sys.exit(f"{' '.join(command)}\nrank {rank}: {size} bytes of {kind}, the report says {memory[kind]}")
        if [saved] != memory["saved_per_microbatch"]:
            sys.exit(f"{' '.join(command)}\nrank {rank} keeps {saved} bytes, the report says {memory['saved_per_microbatch']}")
        if peak != memory["peak"]:
            sys.exit(f"{' '.join(command)}\nrank {rank}: {peak} bytes at the peak, the report says {memory['peak']}")
    checked += 1
shutil.rmtree(scratch, ignore_errors=True)
print(f"{checked} sets of traces hold what the report says")
