"""Every collective of every rank runs in the group of ranks that differ from it on the axes of the collective only.

    groups.py stagec stage-trace jobs.stg scratch-folder
"""
import collections
import itertools
import json
import re
import shutil
import sys

from commands import run

stagec, stage_trace, program, scratch = sys.argv[1:]
checked = 0
for job, pp, dp, cp, tp in itertools.product("ab", (1, 2), (1, 2), (2, 4), (2, 4)):
    shutil.rmtree(scratch, ignore_errors=True)
    report = json.loads(run([stagec, program, f"--job={job}", f"-Dpp={pp}", f"-Ddp={dp}", f"-Dcp={cp}", f"-Dtp={tp}",
                             "--report=json", "-o", scratch]))
    run([stage_trace, "verify", scratch])
    axes = list(report["mesh"])
    coordinates = list(itertools.product(*(range(size) for size in report["mesh"].values())))
    groups = {number: tuple(ranks) for number, ranks in json.load(open(f"{scratch}/comm_group.json")).items()}
    tags = set()
    for rank, place in enumerate(coordinates):
        expected = collections.Counter()
        for row in report["stages"][place[axes.index("pp")]]["communication"]:
            if row["operation"] != "send":
                members = tuple(other for other, there in enumerate(coordinates)
                                if all(name in row["axes"] or there[i] == place[i] for i, name in enumerate(axes)))
                expected[row["operation"].upper(), members] += row["count"]
        found = collections.Counter()
        for match in re.finditer(r'comm_type=(\w+) .*pg_name="(\d+)" comm_tag=(\d+)', run([stage_trace, "dump", f"--rank={rank}", scratch])):
            found[match[1], groups[match[2]]] += 1
            # All members agree on the tags (verify compares them), and no two collectives of a group share one.
            if (rank, match[2], match[3]) in tags:
                sys.exit(f"job {job}, rank {rank}: two collectives of group {match[2]} have tag {match[3]}")
            tags.add((rank, match[2], match[3]))
        if found != expected:
            sys.exit(f"job {job}, pp {pp} dp {dp} cp {cp} tp {tp}, rank {rank}: {found}, expected {expected}")
        checked += 1
shutil.rmtree(scratch, ignore_errors=True)
print(f"{checked} ranks run their collectives in the right groups")
