#!/usr/bin/env python3
"""Draws a file of requests for `stagec serve`: arrivals, lengths of prompts and of outputs.

    requests.py --rate=4 --seconds=600 -o requests.jsonl

It is synthetic. Arrivals are a Poisson process whose rate swings around --rate by --swing as over a day of --day seconds (0: it does
not). Lengths are log-normal, which is what published traces of conversations look like, with these medians and a
standard deviation of their logarithms, and cut at the limits:

    prompts   median 1,020   deviation 1.2   1 to 16,384
    outputs   median   130   deviation 0.9   1 to 2,048

The same arguments give the same file on every machine: only --seed, uniform random numbers, and elementary functions are used,
and lengths and milliseconds are rounded. requests_10min.jsonl is `requests.py --rate=1.5 --seconds=600 --day=1200`.
"""
import argparse
import json
import math
import random
import sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rate", type=float, default=4, help="requests per second, in the mean of a day")
parser.add_argument("--seconds", type=float, help="how long requests arrive")
parser.add_argument("--count", type=int, help="how many requests, instead")
parser.add_argument("--swing", type=float, default=0.5, help="from 1 - swing at night to 1 + swing at noon, times the rate")
parser.add_argument("--day", type=float, default=0)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("-o", default="-")
options = parser.parse_args()
if (options.seconds is None) == (options.count is None):
    parser.error("give --seconds or --count")

rng = random.Random(options.seed)


def normal():
    """Box and Muller's, as versions of Python may draw normal numbers differently."""
    return math.sqrt(-2 * math.log(1 - rng.random())) * math.cos(2 * math.pi * rng.random())


def length(median, deviation, most):
    return min(most, max(1, round(median * math.exp(deviation * normal()))))


def arrivals():
    """By thinning: candidates at the highest rate, of which as many are kept as the rate is lower then."""
    swing = options.swing if options.day else 0
    time = 0.0
    while True:
        time += -math.log(1 - rng.random()) / (options.rate * (1 + swing))
        share = 1 - swing * math.cos(2 * math.pi * time / options.day) if swing else 1
        if rng.random() * (1 + swing) < share:
            yield time


with sys.stdout if options.o == "-" else open(options.o, "w") as file:
    for number, time in enumerate(arrivals()):
        if options.seconds is not None and time >= options.seconds or number == options.count:
            break
        file.write(json.dumps({"arrival": round(time, 3), "prompt": length(1020, 1.2, 16384), "output": length(130, 0.9, 2048)}) + "\n")
