"""How much more the first stage of each report holds than that of the first one, with its residents."""
import json
import os
import sys


def read(path):
    with open(path) as file:
        return json.load(file)["stages"][0]["memory"]


plain = read(sys.argv[1])
for path in sys.argv[2:]:
    memory = read(path)
    print(f"{path.rsplit('.', 1)[1]}: residents {memory.get('residents', 0)}, more {memory['peak'] - plain['peak']}")
    for live in memory["live"]:
        if live["class"] == "residents":
            print(live["bytes"], live["name"])
