"""Checks the tables that the graph has for lists of std.loads against the definitions of these patterns.

    load_patterns.py stagec jobs.stg job
"""
import math
import os
import re
import sys
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "CodeGen", "Inputs"))
from commands import run

stagec, program, job = sys.argv[1:]
X = 8


def draw(seed, i):
    """Number i of a sequence: four rounds of a quadratic map modulo a prime."""
    n = seed * 7919 + i + 1
    for _ in range(4):
        n = (n * n * 48271 + n * 16807 + 12345) % 1048573
    return Fraction(n, 1048573)


def zipf(s, turn=0):
    return [((x + turn) % X + 1) ** -s for x in range(X)]


hot = [Fraction(1, 4) if x == 3 else Fraction(3, 4) / 7 for x in range(X)]
PATTERNS = {
    "equal(8)": [1] * X,
    "hot_expert(8, 0.25, hot = 3)": hot,
    "hot_rank(8, 4, 0.625, hot = 1)": [Fraction(5, 16) if x in (2, 3) else Fraction(3, 8) / 6 for x in range(X)],
    "zipf(8)": zipf(1),
    "zipf(8, 0.5)": zipf(0.5),
    "turned_zipf(8, 0.5, seed = 2)": zipf(0.5, math.floor(8 * draw(2, 0))),
    "ragged(8, 3.0, seed = 5)": [1 + 2 * draw(5, x) for x in range(X)],
    "burst(8, 30, 0.25, 10, length = 2)": hot,
    "burst(8, 31, 0.25, 10, length = 2)": hot,
    "burst(8, 32, 0.25, 10, length = 2)": [1] * X,
}
for pattern, expected in PATTERNS.items():
    graph = run([stagec, program, "--job", job, "--emit=graph", "-D", "loads=[%s]" % pattern])
    table = [int(number) for number in re.search(r"table load\[8\] = \[([\d, ]+)\];", graph).group(1).split(",")]
    if all(isinstance(number, (int, Fraction)) for number in expected):
        # Exactly in proportion.
        assert [Fraction(number, sum(table)) for number in table] == [Fraction(number) / sum(expected) for number in expected], pattern
    else:
        # In units of 2^-40 of the largest, which libraries of mathematics may round differently.
        assert all(abs(number - weight / max(expected) * 2**40) <= 1 for number, weight in zip(table, expected)), (pattern, table)
assert len({tuple(draw(seed, i) for i in range(4)) for seed in range(50)}) == 50
print(len(PATTERNS), "patterns are as defined")
