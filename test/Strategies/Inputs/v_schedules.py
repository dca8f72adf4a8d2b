"""v_schedules.py STAGEC PROGRAM: what V-Min and V-Half of the library do for 2 to 8 stages, run by a simulation of its own.

Every unit takes one unit of time and a message none. Stage r has chunk 0 at place r of the V and chunk 1 at place 2p - 1 - r. Counted:
  each stage runs F, I and W of each microbatch and chunk once;
  the simulation ends, so that no stage waits for ever;
  a stage keeps no more chunks, from F to I, than their lives in the uniform schedule have room for: each chunk's life over 6, rounded up;
  no stage waits longer than the way of one microbatch takes: the step is at most 6 m and that.
"""
import re
import subprocess
import sys

stagec, program = sys.argv[1:]


def turn_down(name, p):
    """When stage 0 begins backward of chunk 1, and how long the way up of forward is."""
    if name == "v_min":
        return 2 * p + (2 if p % 3 == 0 else 0), 2 * p - 1, 1
    return 3 * p + (3 if p % 2 == 0 else 0), 3 * p - 2, 2


def read_orders(name, p, m):
    done = subprocess.run([stagec, program, "--job=min", "--emit=job", "-D", f"pp={p}", "-D", f"B={m}", "-D", f"pipeline_schedule={name}"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    found = re.findall(r"stage (\d+) at [\d ]+: ([^\n;]*)", done.stdout)
    return [[(unit[0], *map(int, unit[1:].split("."))) for unit in order.split()] for _, order in found]


def simulate(orders, p):
    """The end of each unit; units of a stage run in their order, as soon as what they need is there."""
    ends, position, free = {}, [0] * p, [0] * p
    moved = True
    while moved:
        moved = False
        for r in range(p):
            while position[r] < len(orders[r]):
                kind, i, c = orders[r][position[r]]
                place = r if c == 0 else 2 * p - 1 - r
                needs = []
                if kind == "F" and place:
                    needs = [("F", i, place - 1)]
                elif kind == "I":
                    needs = [("I", i, place + 1)] if place < 2 * p - 1 else [("F", i, place)]
                elif kind == "W":
                    needs = [("I", i, place)]
                if any(need not in ends for need in needs):
                    break
                free[r] = ends[kind, i, place] = max([free[r]] + [ends[need] for need in needs]) + 1
                position[r] += 1
                moved = True
    if any(position[r] < len(orders[r]) for r in range(p)):
        sys.exit(f"stages wait for ever: {position}")
    return max(ends.values())


for name in ("v_min", "v_half"):
    for p in range(2, 9):
        m = 2 * p + 1
        down, up, steps = turn_down(name, p)
        home = down + up if name == "v_half" else down + 2 * p - 1
        orders = read_orders(name, p, m)
        assert len(orders) == p, orders
        for r, order in enumerate(orders):
            assert sorted(order) == sorted((kind, i, c) for kind in "FIW" for i in range(m) for c in (0, 1)), (name, p, r)
            # from the begin of F to the end of I
            lives = home - steps * r - r + 1, down + r - (up - steps * r) + 1
            kept = most = 0
            for kind, *_ in order:
                kept += {"F": 1, "I": -1, "W": 0}[kind]
                most = max(most, kept)
            assert most <= sum(-(-life // 6) for life in lives), (name, p, r, most, lives)
        end = simulate(orders, p)
        assert 6 * m < end <= 6 * m + home + 6, (name, p, end)
    print(f"{name}: p 2 to 8")
