"""One-forward-one-backward from a job: the order of units, microbatches in flight, and the messages in the traces.

    one_f_one_b.py stagec stage-trace jobs.stg scratch-folder

The order is that of Narayanan et al. 2021 (PipeDream-Flush), computed here by simulating stages that prefer backward
and hold at most p - r microbatches: not by the loops of std.schedules.
"""
import itertools
import json
import re
import shutil
import subprocess
import sys

stagec, stage_trace, program, scratch = sys.argv[1:]
B, S, D = 1, 64, 64
bytes_per_element = 2


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout


def simulate(p, m):
    """Time steps of stages that run what they can: backward first, forward while fewer than p - r are held."""
    forward, backward, orders = [0] * p, [0] * p, [[] for _ in range(p)]
    while any(done < m for done in backward):
        forward_before, backward_before = list(forward), list(backward)
        for r in range(p):
            # Backward of microbatch i needs that of the next stage, and on the last stage its own forward.
            ready = backward_before[r + 1] if r + 1 < p else forward_before[r]
            held = forward[r] - backward[r]
            full = held == min(m - backward[r], p - r)
            if full and backward[r] < ready:
                orders[r].append(f"B{backward[r]}")
                backward[r] += 1
            elif not full and forward[r] < m and (r == 0 or forward[r] < forward_before[r - 1]):
                orders[r].append(f"F{forward[r]}")
                forward[r] += 1
    return orders


def most_in_flight(order):
    held = most = 0
    for unit in order:
        held += 1 if unit[0] == "F" else -1
        most = max(most, held)
    return most


def fail(message):
    sys.exit(f"p={p} m={m}: {message}")


for p, m in itertools.product(range(1, 9), repeat=2):
    values = [f"-DL={p}", f"-Dpp={p}", f"-DB={m}", "--job=pipeline"]
    orders = simulate(p, m)
    text = run([stagec, program, "--emit=program", *values])
    found = [line.split()[1:] for line in re.findall(r"^ +(order [FB0-9 ]+);$", text, re.MULTILINE)]
    if found != orders:
        fail(f"order {found}, expected {orders}")
    stages = json.loads(run([stagec, program, "--report=json", *values]))["stages"]
    for r, stage in enumerate(stages):
        in_flight = stage["memory"]["in_flight"]
        if in_flight != most_in_flight(orders[r]) or in_flight != min(m, p - r):
            fail(f"{in_flight} microbatches in flight on stage {r}, expected {min(m, p - r)}")
print("64 pipelines run 1F1B")

# The messages: one per microbatch, boundary and direction, of s*b*h elements, the sequence split over the axes that
# split it between layers.
checked = 0
for p, m, tp, cp, sp in itertools.product((2, 4), (1, 3), (1, 2), (1, 2), ("true", "false")):
    shutil.rmtree(scratch, ignore_errors=True)
    run([stagec, program, "--job=pipeline", f"-DL={p}", f"-Dpp={p}", f"-DB={m}", f"-Dtp={tp}", f"-Dcp={cp}",
         f"-Dsequence_parallel={sp}", "-o", scratch])
    expected_bytes = S * B * D * bytes_per_element // cp // (tp if sp == "true" else 1)
    neighbours = {}
    for rank in range(p * tp * cp):
        for line in run([stage_trace, "dump", "--rank", str(rank), scratch]).splitlines():
            if match := re.search(r"^\d+ COMM_(SEND|RECV) .* comm_(?:dst|src)=(\d+) comm_size=(\d+) ", line):
                kind, peer, size = match[1], int(match[2]), int(match[3])
                if size != expected_bytes:
                    fail(f"tp={tp} cp={cp} {sp}: {line}: expected {expected_bytes} bytes")
                ends = (rank, peer) if kind == "SEND" else (peer, rank)
                neighbours.setdefault(ends, {"SEND": 0, "RECV": 0})[kind] += 1
    # The pipeline is the outermost axis: the same place of the next stage is tp*cp ranks further.
    width = tp * cp
    expected = {}
    for stage in range(p - 1):
        for place in range(width):
            here, there = stage * width + place, (stage + 1) * width + place
            expected[here, there] = expected[there, here] = {"SEND": m, "RECV": m}
    if neighbours != expected:
        fail(f"tp={tp} cp={cp} {sp}: messages {neighbours}, expected {expected}")
    checked += 1
shutil.rmtree(scratch, ignore_errors=True)
print(f"{checked} sets of traces have their messages")
