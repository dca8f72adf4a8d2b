"""A model with N dims taken apart and put together again, and a concatenation of N tensors."""

import sys

n = int(sys.argv[1])
print("op total(x: [...]) -> f32[] = mean[...](x * x);")
print("model M(D, H) {\n  dim B, S;\n  input x0: [B, S, D];\n  param g: [D];")
print("  let y0[b, s, d] = x0[b, s, d] * g[d];")
for i in range(n):
    print(f"  let h{i}[b, s, h: H, e] = y{i}[b, s, (h e)];")
    print(f"  let y{i + 1}[b, s, (h e): D] = h{i}[b, s, h, e];")
parts = ", ".join(f"y{i}[b, s, d]" for i in range(n + 1))
print(f"  let z[b, s, d] = concat[s]({parts});\n  return total(z);\n}}")
print("job j { model = M(D = 8, H = 2); step = train(B = 2, S = 4, optimizer = adamw); precision = fp32; }")
