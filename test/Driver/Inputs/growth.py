"""Prints a program with n of something: what passes loop over.

    growth.py KIND N
"""
import sys

OPS = """op total(x: [b, d], w: [d]) -> [] = mean[b, d](x * w);
op scale(x: [b, d], w: [d]) -> [b, d] = x * w;
op bend(x: [b, d]) -> [b, d] = sigmoid(x);
"""


def each(n, f):
    return "\n".join(f(i) for i in range(n)) + "\n"


def program(body, decls="", params=(), mesh="dp = 2, tp = 2", rules="shard B over dp; shard D over tp;", step="B = 4"):
    names = ["D", *params]
    sizes = ["D = 8", *(name + " = 4" for name in params)]
    return (OPS + decls + "model M(%s) {\n  dim B;\n  input x: [B, D];\n  param w: [D];\n%s}\n" % (", ".join(names), body)
            + "strategy s() {\n  mesh (%s);\n  %s\n}\n" % (mesh, rules)
            + "job j { model = M(%s); step = train(%s, optimizer = none); precision = fp32; strategy = s(); }" % (", ".join(sizes), step))


def chain(n, rule):
    """A chain of n named values, and a rule for each."""
    body = "let y0 = scale(x, w);\n" + each(n, lambda i: "let y%d = bend(y%d);" % (i + 1, i)) + "return total(y%d, w);\n" % n
    return program(body, rules="shard B over dp; shard D over tp;\n" + each(n, lambda i: rule % (i + 1)))


def dims(n, rule):
    """A parameter with a dim of its own, n times, and a rule for each."""
    body = "var t = total(x, w);\n" + each(
        n, lambda i: "param v{0}: [D{0}]; let s{0}[] = sum[i](v{0}[i]); t = t + s{0};".format(i)) + "return t;\n"
    return program(body, params=["D%d" % i for i in range(n)],
                   rules="shard B over dp; shard D over tp;\n" + each(n, lambda i: rule % i))


def layers(count, body="param q: [D]; y = scale(y, q);", rest="", **options):
    return program("var y = x;\nrepeat layers[%d] { %s }\n%sreturn total(y, w);\n" % (count, body, rest), **options)


PIPELINE = {"decls": "import std.schedules (one_f_one_b);\n", "rules": "pipeline layers over pp { schedule = one_f_one_b; }"}


def piped(count, stages, microbatches):
    text = layers(count, mesh="pp = %d" % stages, rules=PIPELINE["rules"], step="B = %d, microbatch = 1" % microbatches)
    return PIPELINE["decls"] + text


ROUTES = """op send(t: [b, d], to: i32[b], targets: size x, slots: size c) -> [x, c, d] = t { routes b -> x, c; }
op back(y: [x, c, d], to: i32[b]) -> [b, d] = y { routes b -> x, c; }
op choose(t: [b, d]) -> i32[b] { opaque; whole d; }
"""


def routed(n):
    """Tokens that all go by the same integers, there and back, n times."""
    body = "let to = choose(x);\nvar y = scale(x, w);\n" + each(
        n, lambda i: "let s%d = send(y, to, X, 2 * B); y = y + back(bend(s%d), to);" % (i, i)) + "return total(y, w);\n"
    return program(body, decls=ROUTES, params=["X"], mesh="dp = 2, tp = 2", rules="shard B over (dp, tp); shard X over tp;").replace(
        "op bend(x: [b, d]) -> [b, d]", "op bend(x: [...]) -> [...]")


def products(n):
    """Pairs of products, of which the first takes what is gathered, and what the second makes is scattered, n times."""
    body = "let y0 = scale(x, w);\n" + each(
        n, lambda i: "param u{0}: [D, K]; param v{0}: [K, D]; let z{0}[b, k] = sum[d](y{0}[b, d] * u{0}[d, k]);"
        " let y{1}[b, d] = sum[k](z{0}[b, k] * v{0}[k, d]);".format(i, i + 1)) + "return total(y%d, w);\n" % n
    return program(body, params=["K"], step="B = 8, microbatch = 4",
                   rules="shard B over dp; shard K over tp; at y*: shard B over (dp, tp); overlap communication tp with products;")


def kernels(n):
    """Pairs of products of one tensor, n of them, one behind the other."""
    body = "let y0 = scale(x, w);\n" + each(
        n, lambda i: "param u{0}, v{0}: [D, K]; let (a{0}, b{0}) = two(y{0}, u{0}, v{0}); let y{1} = y{0} + back(a{0}, v{0}) + back(b{0}, u{0});".format(i, i + 1))
    return program(body + "return total(y%d, w);\n" % n, params=["K"], rules="shard B over dp; shard K over tp;", decls=
                   "op two(x: [b, d], u: [d, k], v: [d, k]) -> (a: [b, k], c: [b, k]) = (sum[d](x * u), sum[d](x * v));\n"
                   "op back(a: [b, k], v: [d, k]) -> [b, d] = sum[k](a * v);\n")


def quantized(n):
    """A chain of n products, and n products of one tensor, each with a rule that keeps what it reads in a small type."""
    body = "let y0 = scale(x, w);\nvar t = total(y0, w);\n" + each(
        n, lambda i: "param u{0}, v{0}: [D, K]; let z{0}[b, k] = sum[d](y{0}[b, d] * u{0}[d, k]);"
        " let y{1}[b, d] = sum[k](z{0}[b, k] * v{0}[d, k]); let r{0}[b, k] = sum[d](y0[b, d] * v{0}[d, k]); t = t + sums(r{0}, w);".format(i, i + 1))
    return program(body + "return t + total(y%d, w);\n" % n, params=["K"], decls="op sums(x: [b, k], w: [d]) -> [] = sum[b, k](x) + sum[d](w);\n",
                   rules="shard B over dp; shard K over tp; quantize contract() as f8 by 2;\n" + each(n, lambda i: "quantize param u%d as i8 by 2;" % i))


def matrices(n):
    """A kernel of n products of one tensor."""
    names = ["v%d" % i for i in range(n)]
    return program(
        "let y = scale(x, w);\nvar t = sums(x, w);\n" + each(n, lambda i: "param v%d: [D, K];" % i)
        + "let (%s) = many(y, %s);\n" % (", ".join("a%d" % i for i in range(n)), ", ".join(names))
        + each(n, lambda i: "t = t + sums(a%d, w);" % i) + "return t;\n", params=["K"], rules="shard B over (dp, tp);",
        decls="op sums(x: [b, d], w: [e]) -> [] = sum[b, d](x) + sum[e](w);\nop many(x: [b, d], %s) -> (%s) = (%s);\n" % (
            ", ".join("%s: [d, f]" % name for name in names), ", ".join("a%d: [b, f]" % i for i in range(n)),
            ", ".join("sum[d](x * %s)" % name for name in names)))


TWO_STEPS = """op send(t: [b, d], to: i32[b], nodes: size o, slots: size n) -> [o, n, d] = t { routes b -> o, n; }
op spread(t: [o, n, d], to: i32[o, n], targets: size x, slots: size c) -> [o, x, c, d] = t { routes n -> x, c; }
op gather_up(y: [o, x, c, d], to: i32[o, n]) -> [o, n, d] = y { routes n -> x, c; }
op back(y: [o, n, d], to: i32[b]) -> [b, d] = y { routes b -> o, n; }
op choose(t: [b, d]) -> i32[b] { opaque; whole d; }
op choose_again(t: [o, n, d]) -> i32[o, n] { opaque; whole d; }
"""


def two_steps(n):
    """Tokens that go to nodes and then to positions of these, and back, n times."""
    body = "let to = choose(x);\nvar y = scale(x, w);\n" + each(
        n, lambda i: ("let s{0} = send(y, to, O, 2 * B); let own{0} = choose_again(s{0});\n"
                      "y = y + back(gather_up(bend(spread(s{0}, own{0}, X, 2 * B)), own{0}), to);").format(i)) + "return total(y, w);\n"
    return program(body, decls=TWO_STEPS, params=["O", "X"], mesh="dp = 2, tp = 2", rules="shard B over (dp, tp); shard O over dp, X over tp;").replace(
        "op bend(x: [b, d]) -> [b, d]", "op bend(x: [...]) -> [...]")


KINDS = {
    "kernels": kernels,
    "matrices": matrices,
    "quantized": quantized,
    "routed": routed,
    "two_steps": two_steps,
    "products": products,
    # Rules.
    "values": lambda n: chain(n, "at y%d: shard B over dp;"),
    "anywhere": lambda n: chain(n, "at **.y%d: shard B over dp;"),
    "gradients": lambda n: chain(n, "at y%d.grad: shard B over dp;"),
    "recomputed": lambda n: chain(n, "recompute y%d;"),
    "alternating": lambda n: layers(
        n, rules="shard B over dp; shard D over tp; recompute layers[i] if i % 2 == 0;", body="param q: [D]; y = bend(scale(y, q));"),
    "modules": lambda n: program(
        "var y = scale(x, w);\n" + each(n, lambda i: "y = Bend(y) as m%d;" % i) + "return total(y, w);\n",
        decls="module Bend(x: [B, D]) -> [B, D] { let y = bend(x); return bend(y); }\n",
        rules="shard B over dp; shard D over tp;\n" + each(n, lambda i: "recompute m%d { whole = true; }" % i)),
    "replicated": lambda n: chain(n, "replicate y%d over tp;"),
    "parts": lambda n: program(
        "var y = x;\n" + each(n, lambda i: "param v{0}: [D]; y = scale(y, v{0});".format(i)) + "return total(y, w);\n",
        rules="shard B over dp; shard D over tp; partition parameters over dp;"),
    "buckets": lambda n: program(
        "var y = x;\n" + each(n, lambda i: "param v{0}: [D]; y = scale(y, v{0});".format(i)) + "return total(y, w);\n",
        rules="shard B over dp; shard D over tp; reduce gradients over dp { bucket = 1KiB; type = bf16; overlap = true; }"),
    "hosted": lambda n: program(
        "param u: [D];\nvar y = x;\n" + each(n, lambda i: "param p%d: [D]; y = scale(y, p%d);" % (i, i)) + "return total(y, w) + total(y, u);\n",
        mesh="dp = 2", rules="shard B over dp; partition parameters over dp by unit * { prefetch = 1; } offload parameters to host;"),
    "hosted_layers": lambda n: layers(n, mesh="dp = 2", rules="shard B over dp; partition parameters over dp by unit * { prefetch = 1; } offload parameters to host;"),
    "kept": lambda n: layers(n, mesh="dp = 2", rules="shard B over dp; partition parameters over dp by unit * { prefetch = 1; keep = last; }"),
    "grouped": lambda n: layers(n, rules="shard B over dp; shard D over tp; recompute layers[*] { group = 3; }"),
    "grouped_all": lambda n: layers(n, rules="shard B over dp; shard D over tp; recompute layers[*] { whole = true; group = %d; }" % n),
    "bucketed": lambda n: layers(n, rules="shard B over dp; shard D over tp; reduce gradients over dp { bucket = 1KiB; overlap = true; }"),
    "clipped": lambda n: layers(n, rules="shard B over dp; shard D over tp; partition optimizer over dp;", step="B = 4, clip = 1.0"),
    "params": lambda n: program(
        "var y = x;\n" + each(n, lambda i: "param v{0}: [D]; y = scale(y, v{0});".format(i)) + "return total(y, w);\n",
        rules="shard B over dp; shard D over tp;\n" + each(n, lambda i: "at param v%d: shard D over ();" % i)),
    "operators": lambda n: program(
        "var y = scale(x, w);\n" + each(n, lambda i: "y = f%d(y);" % i) + "return total(y, w);\n",
        decls=each(n, lambda i: "op f%d(x: [b, d]) -> [b, d] = sigmoid(x);" % i),
        rules="shard B over dp; shard D over tp;\n" + each(n, lambda i: "at **.f%d(): shard d over tp;" % i)),
    "dims": lambda n: dims(n, "shard D%d over tp;"),
    "pads": lambda n: dims(n, "pad D%d to 8;"),
    "missing": lambda n: chain(n, "at **.z%d: shard B over dp;"),
    # Ops, repeats, units.
    "ops": lambda n: program(
        "var y = scale(x, w);\n" + each(n, lambda i: "y = bend(y) * y;") + "return total(y, w);\n"),
    "repeats": lambda n: program(
        "var y = x;\n" + each(n, lambda i: "repeat l%d[2] { param q: [D]; y = scale(y, q); }" % i) + "return total(y, w);\n"),
    "addends": lambda n: program(
        "let a = scale(x, w);\nvar y = a;\n"
        + each(n, lambda i: "param v{0}: [D]; y = y + scale(a, v{0});".format(i)) + "return total(y, w);\n"),
    "slices": lambda n: program(
        "let y = scale(x, w);\nvar t = total(x, w);\n"
        + each(n, lambda i: "let s{0} = y[0..B, {1}]; let t{0}[] = sum[b](s{0}[b]); t = t + t{0};".format(i, i % 8))
        + "return t;\n"),
    "lets": lambda n: program(
        "return total(f(scale(x, w)), w);\n",
        decls="op f(x: [b, d]) -> [b, d] {\nlet a0 = x;\n" + each(n, lambda i: "let a{1} = a{0} * a{0} + 1;".format(i, i + 1))
        + "result = a%d; }\n" % n),
    "buffers": lambda n: program(
        "var y = scale(x, w);\n" + each(n, lambda i: "buffer v{0}: [D]; y = scale(y, v{0});".format(i)) + "return total(y, w);\n"),
    "names": lambda n: program(
        "let y0 = scale(x, w);\n" + each(n, lambda i: "let y%d: [B, D@%s] = y%d;" % (i + 1, "tp" if i % 2 else "()", i))
        + "return total(y%d, w);\n" % n),
    "microbatches": lambda n: piped(4, 4, n),
    "stages": lambda n: piped(n, n, 8),
    "iterations": lambda n: layers(n),
}

if __name__ == "__main__":
    print(KINDS[sys.argv[1]](int(sys.argv[2])))
