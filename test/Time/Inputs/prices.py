"""Prices shapes on h100 and rtx_pro_6000 of std.machines by tables, and below them, and compares them with price-work.

  prices.py STDLIB PRICE_WORK

Written from docs/Machines.md, without the compiler's code: exact fractions for amounts, Python's own logarithms. Rates are
those of the data sheet, again, and constants those that fit servers.
"""
import csv
import itertools
import math
import subprocess
import sys
from fractions import Fraction

STDLIB, PRICE_WORK = sys.argv[1:]
FLOPS, WIDTH = {"bf16": 989e12, "f16": 989e12, "f8": 1979e12, "f32": 67e12}, {"bf16": 2, "f16": 2, "f8": 1, "f32": 4}
MEMORY, STREAM = 3.35e12, 3.35e12 * 0.8
SUSTAINED = {"bf16": 0.87, "f16": 0.87, "f8": 0.95, "f32": 1}
NODE, PORT = 450e9 * 0.70, 50e9 * 0.85
BASE, HOP, NET = 8.4e-6, 3.4e-6, 14e-6
# Products of few rows, by type: part of FLOP/s, and what each takes besides. Parts of memory for weights and for caches.
SMALL = {"bf16": (0.75, 3e-6), "f16": (0.75, 3e-6), "f8": (0.60, 4e-6)}
WEIGHTS, CACHE = 0.85 * MEMORY, 0.87 * MEMORY
# rtx_pro_6000 has no tables.
RTX_FLOPS, RTX_MEMORY = 503.8e12, 1792e9


def read(name):
    """Values by coordinates, and the coordinates of each axis."""
    with open(f"{STDLIB}/tables/{name}.csv") as file:
        rows = [[float(cell) for cell in row] for row in csv.reader(file) if row and row[0][0].isdigit()]
    return {tuple(row[:-1]): row[-1] for row in rows}, [sorted({row[i] for row in rows}) for i in range(len(rows[0]) - 1)]


def corners(axis, value, scale):
    """The neighbours of a value on an axis, with weights."""
    value = min(max(value, axis[0]), axis[-1])
    above = next(at for at in axis if at >= value)
    if above == value:
        return [(value, 1)]
    below = max(at for at in axis if at < value)
    part = (scale(value) - scale(below)) / (scale(above) - scale(below))
    return [(below, 1 - part), (above, part)]


def nearest(axis, value):
    return min(axis, key=lambda at: (abs(at - value), -at))


def look_up(name, point, fixed=()):
    values, axes = read(name)
    sides = [[(at, 1)] for at in fixed]
    sides += [corners(axis, value, math.log) for axis, value in zip(axes[len(fixed) :], point)]
    return sum(math.prod(w for _, w in each) * values[tuple(at for at, _ in each)] for each in itertools.product(*sides))


def contraction(kind, m, n, k, batch, grouped, result, moved):
    rows = m if grouped else m * batch
    if rows >= LEAST.get(kind, 0):
        return by_table(kind, m, n, k, batch, grouped, result, moved)
    share, floor = SMALL[kind]
    small = math.hypot(2 * m * batch * n * k / (share * FLOPS[kind]), moved / WEIGHTS) + floor
    times = LEAST[kind] / rows
    return min(small, by_table(kind, m * times, n, k, batch, grouped, result * times, moved * times))


def by_table(kind, m, n, k, batch, grouped, result, moved):
    rows, count = (m, batch) if grouped else (m * batch, 1)
    width, out = WIDTH[kind], max(2, WIDTH[kind])
    roof = max(2 * rows * n * k / FLOPS[kind], (width * (rows * k + k * n) + out * rows * n) / MEMORY) + 2e-6
    table = {"bf16": "h100_contraction_bf16", "f16": "h100_contraction_bf16", "f8": "h100_contraction_f8"}.get(kind)
    time = count * roof * (look_up(table, (rows, n, k)) if table else 1 / 0.6) / SUSTAINED[kind]
    if not grouped and batch > 1:
        time = max(time, moved / STREAM)
    return time + max(0, result - out * count * rows * n) / STREAM


def attention(kind, rows, columns, heads, key_heads, size, value_size, pairs, backward, moved, latent):
    both = size + value_size
    if rows < columns and rows < 256 and not backward:
        cache = moved - WIDTH[kind] * heads * rows * both
        share, floor = (0.80, 12e-6) if latent else (0.50, 8e-6)
        return math.hypot(2 * pairs * both / (share * FLOPS[kind]), cache / CACHE) + floor
    roof = max(2 * pairs * both / FLOPS[kind], WIDTH[kind] * both * (heads * rows + key_heads * columns) / MEMORY) + 2e-6
    _, axes = read("h100_attention_bf16")
    ratio = look_up("h100_attention_bf16", (columns, heads), (nearest(axes[0], size),))
    return roof * ratio * (3 if backward else 1)


def rtx_contraction(kind, m, n, k, batch, grouped, result, moved):
    return math.hypot(2 * m * n * k / (0.79 * RTX_FLOPS), moved / (0.83 * RTX_MEMORY)) + 4e-6


def rtx_attention(kind, rows, columns, heads, key_heads, size, value_size, pairs, backward, moved, latent):
    both = size + value_size
    if rows == columns or backward:
        roof = max(2 * pairs * both / RTX_FLOPS, 2 * both * (heads * rows + key_heads * columns) / RTX_MEMORY) + 2e-6
        return roof / 0.42 * (3 if backward else 1)
    return math.hypot(2 * pairs * both / (0.42 * RTX_FLOPS), (moved - 2 * heads * rows * both) / (0.72 * RTX_MEMORY)) + 6e-6


def elementwise(flops, moved):
    return max(moved / STREAM, flops / FLOPS["f32"], 4e-6)


def inside(kind, whole, members):
    values, (groups, sizes) = read("h100_" + kind)
    group = nearest(groups, members)
    time = sum(w * values[(group, at)] for at, w in corners(sizes, whole, float))
    time *= max(1, whole / sizes[-1])
    return time * 1e-6 * Fraction(members - 1, members) / Fraction(int(group) - 1, int(group))


def collective(kind, moved, first, count, stride):
    ranks = [first + i * stride for i in range(count)]
    nodes = {}
    for rank in ranks:
        nodes[rank // 8] = nodes.get(rank // 8, 0) + 1
    whole = moved * count if kind == "all_gather" else moved
    if len(nodes) == 1:
        return inside(kind, whole, count)
    least, blocks = min(nodes.values()), len(nodes)
    if kind == "all_to_all":
        passing = moved * (count - least) / count / PORT
        kept = moved * least / count
    else:
        passing = (2 if kind == "all_reduce" else 1) * whole * (count - 1) / count / (least * PORT)
        kept = whole
    if kind == "all_reduce":
        latency = BASE + 2 * ((least - 1) * HOP + math.log2(blocks) * NET)
    else:
        latency = BASE + (count - blocks) * HOP + blocks * NET
    return max(passing + latency, inside(kind, kept, least) if least > 1 else 0)


def message(moved, source, target):
    near = source // 8 == target // 8
    return moved / (NODE if near else PORT) + (HOP if near else NET)


def list_cases():
    for kind in ("bf16", "f8"):
        for m, n, k in [(64, 512, 256), (128, 512, 512), (256, 2048, 4096), (4096, 8192, 1024), (1000, 3000, 5000), (127, 4096, 4096),
                        (8192, 28672, 8192), (70000, 70000, 70000), (333, 16384, 300), (4096, 128, 4096), (2048, 12288, 100)]:
            yield "contraction", kind, m, n, k, 1, 0, 2 * m * n, WIDTH[kind] * (m + n) * k + 2 * m * n
    for kind in ("f16", "f32"):
        for m, n, k in [(64, 512, 256), (5000, 1500, 700)]:
            yield "contraction", kind, m, n, k, 1, 0, WIDTH[kind] * m * n, 0
    yield "contraction", "bf16", 1024, 8192, 4096, 1, 0, 8 * 1024 * 8192, 0
    yield "contraction", "bf16", 512, 14336, 4096, 8, 1, 8 * 2 * 512 * 14336, 0
    yield "contraction", "bf16", 2048, 2048, 128, 32, 0, 32 * 2 * 2048 * 2048, 302000000
    yield "contraction", "bf16", 2048, 2048, 128, 32, 0, 32 * 2 * 2048 * 2048, 3020000000
    for length in (100, 256, 700, 4096, 9000, 40000):
        for heads, keys, size in [(1, 1, 64), (32, 8, 128), (40, 40, 96), (20000, 20000, 128)]:
            yield "attention", "bf16", length, length, heads, keys, size, size, heads * length * length // 2, len(str(length)) % 2, 0, 0
    yield "attention", "bf16", 1024, 8192, 32, 8, 192, 128, 32 * 1024 * 7000, 1, 0, 0
    for flops, moved in [(0, 0), (10**6, 10**6), (10**6, 10**9), (10**12, 10**9)]:
        yield "elementwise", flops, moved
    for kind in ("all_gather", "all_reduce", "reduce_scatter", "all_to_all"):
        for first, count, stride in [(0, 8, 1), (8, 2, 1), (4, 3, 1), (0, 2, 4), (0, 6, 1), (0, 16, 1), (0, 64, 1), (3, 8, 8), (6, 4, 1), (0, 24, 1), (0, 12, 4),
                                     (0, 512, 1), (0, 128, 8), (4, 24, 1), (0, 96, 3)]:
            for moved in (1000, 5_000_000, 3_000_000_000):
                yield kind, moved, first, count, stride
    for source, target in [(0, 7), (7, 8), (0, 900)]:
        yield "message", 8_388_608, source, target


def list_small_products():
    """Weights may be stored in fewer bytes than they are multiplied in, which `moved` says."""
    for kind, weight in (("bf16", 2), ("bf16", 1), ("bf16", 0.53), ("f8", 1), ("f8", 0.5625), ("f16", 2)):
        for rows in (1, 7, 16, 63):
            for n, k in [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096), (512, 7168), (65536, 65536)]:
                yield "contraction", kind, rows, n, k, 1, 0, 2 * rows * n, int(n * k * weight) + WIDTH[kind] * rows * k + 2 * rows * n
    # Several, with one weight and with one for each.
    yield "contraction", "bf16", 4, 2048, 4096, 8, 0, 2 * 32 * 2048, 2 * 4096 * (32 + 2048) + 2 * 32 * 2048
    yield "contraction", "bf16", 4, 2048, 4096, 8, 1, 2 * 32 * 2048, 2 * 4096 * (32 + 8 * 2048) + 2 * 32 * 2048


def list_cached():
    """New tokens of sequences against caches of bf16 and f8: eight key heads, and latent vectors."""
    for rows, length, sequences in itertools.product((1, 4, 255), (256, 1000, 131072), (1, 16, 128)):
        for keys, group, width in ((8, 4, 2), (8, 8, 1), (1, 16, 2)):
            moved = sequences * (width * length * keys * 256 + 2 * rows * keys * group * 256)
            yield ("attention", "bf16", rows, length, sequences * keys * group, sequences * keys, 128, 128,
                   sequences * keys * group * rows * length, 0, moved, 0)  # fmt: skip
        moved = sequences * (2 * length * 576 + 2 * rows * 128 * (576 + 512))
        yield "attention", "bf16", rows, length, sequences * 128, sequences, 576, 512, sequences * 128 * rows * length, 0, moved, 1
    # Backward, and as many queries as keys, are training.
    yield "attention", "bf16", 64, 1024, 32, 8, 128, 128, 32 * 64 * 1000, 1, 10**7, 0
    yield "attention", "bf16", 64, 64, 32, 8, 128, 128, 32 * 64 * 32, 0, 10**7, 0


def list_rtx():
    for rows in (1, 64, 2048):
        for n, k in [(6144, 4096), (4096, 14336)]:
            yield "contraction", "bf16", rows, n, k, 1, 0, 2 * rows * n, 2 * (n * k + rows * (n + k))
    for rows in (1, 512, 4096):
        yield "attention", "bf16", rows, 4096, 32, 8, 128, 128, 32 * rows * 4000, rows == 512, 2 * 256 * (32 * rows + 8 * 4096), 0


LEAST = {kind: read("h100_contraction_" + kind)[1][0][0] for kind in ("bf16", "f8")}
LEAST["f16"] = LEAST["bf16"]


def compare(machine, cases, prices):
    """Prints each price that differs, and how many there are."""
    text = "".join(" ".join(str(int(cell)) if isinstance(cell, bool) else str(cell) for cell in case) + "\n" for case in cases)
    command = [PRICE_WORK, f"{STDLIB}/machines.stg:{machine}", f"--library={STDLIB}"]
    found = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    wrong = 0
    for (kind, *arguments), line in zip(cases, found):
        price = prices[kind](*arguments) if kind in prices else collective(kind, *arguments)
        # A nanosecond, and what doubles lose of a price of hours.
        if abs(int(line.split()[0]) * 1e-12 - price) > 1e-9 + 1e-13 * price:
            wrong += 1
            print(kind, *arguments, "expected", float(price), "found", int(line.split()[0]) * 1e-12)
    print(f"{machine}: {len(found)} of {len(cases)} prices, {wrong} differ")


def main():
    cases = list(list_cases())
    kinds = {"contraction": contraction, "attention": attention, "elementwise": elementwise, "message": message}
    between = sum(kind not in kinds and (arguments[2] - 1) * arguments[3] >= 8 for kind, *arguments in cases)
    small, cached = list(list_small_products()), list(list_cached())
    print(f"{sum(kind in kinds and kind != 'message' for kind, *_ in cases)} shapes, {between} groups between nodes")
    print(f"{len(small)} products of few rows, {len(cached)} shapes of attention to a cache")
    compare("h100", cases + small + cached, kinds)
    compare("rtx_pro_6000", list(list_rtx()), {"contraction": rtx_contraction, "attention": rtx_attention})


main()
