"""A program with a chain of ops that have no node, each of which uses the one before it twice.

    free_ops.py how-many
"""
import sys

count = int(sys.argv[1])
print("op twice(x: [...], y: [...]) -> [...] = x * y { bytes = 0; flops = 0; }")
print("op total(x: [b, d], w: [d]) -> [] = mean[b, d](x * w);")
print("model M(D) { dim B; input x: [B, D]; param w0: [D];")
for i in range(1, count + 1):
    print(f"  let w{i} = twice(w{i - 1}, w{i - 1});")
print(f"  return total(x, w{count}); }}")
print("job j { model = M(D = 8); step = train(B = 4, optimizer = none); precision = fp32; }")
