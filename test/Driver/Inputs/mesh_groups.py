#!/usr/bin/env python3
"""Compares the groups that --emit=mesh prints with those of comm_group.json: their number, the first and the last."""
import json
import re
import sys

groups = [sorted(members) for members in json.load(open(sys.argv[2])).values()]


def read(text):
    ranges = [list(map(int, part.split("-"))) for part in text.split(", ")]
    return [rank for part in ranges for rank in range(part[0], part[-1] + 1)]


lines = open(sys.argv[1]).read().split("\n\n")[1].splitlines()[1:]
total = kinds = 0
for line in lines:
    axes, members, count, first, last = re.split(r"\s{2,}", line.strip())
    if "(messages)" in axes:
        continue
    for text in first, last:
        assert len(read(text)) == int(members) and read(text) in groups, line
    total += int(count)
    kinds += 1
assert total == len(groups), (total, len(groups))
print(f"{total} groups of {kinds} kinds")
