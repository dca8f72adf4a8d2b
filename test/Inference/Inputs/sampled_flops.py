"""What sampling adds to the FLOPs of jobs, duplicated ones included: the first one's, which samples nothing, are subtracted from those of each other one."""
import json
import sys

plans = [plan["report"] for plan in json.load(sys.stdin)["plans"]]
counts = [sum(plan[field][kind] for field in ("flops", "duplicated_flops") for kind in ("model", "other")) for plan in plans]
added = [count - counts[0] for count in counts[1:]]
assert added == [int(number) for number in sys.argv[1:]], added
