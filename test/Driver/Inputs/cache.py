"""Compiles with and without the cache of syntax trees: nobody may see a difference.

    cache.py STAGEC SCRATCH FILE.stg...
"""

import os
import resource
import struct
import subprocess
import sys
from pathlib import Path

stagec, scratch, files = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
scratch.mkdir()
cache = scratch / "home" / "stagec"


def run(*arguments, tool=stagec, home=cache.parent, limit=None):
    def prepare():
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run([tool, *arguments], capture_output=True, text=True, preexec_fn=prepare,
                          env={**os.environ, "XDG_CACHE_HOME": str(home)})
    return done.returncode, done.stdout, done.stderr


def read_entries():
    return {path.name: path.read_bytes() for path in cache.iterdir()} if cache.exists() else {}


def check(arguments, **options):
    """A run like that without a cache."""
    assert run(*arguments, **options) == run(*arguments, "--no-cache"), (arguments, options)


for path in files:
    assert run(path, "--emit=ast", "--no-cache")[0] == 0, path
assert not read_entries(), "--no-cache writes"
for path in files:
    for _ in ("first", "again"):
        check([path, "--emit=ast"])
print(len(files), "files,", len(read_entries()), "entries")

# The whole compiler; messages about places of the program and of the library.
program = scratch / "program.stg"
program.write_text("""import std.nn (linear);
module Layer(x: [B, D], F) -> [B, F] { param w: [D, F]; return linear(x); }
op total(x: [b, d]) -> [] = mean[b, d](x * x);
model Tiny(D) { dim B; input x: [B, D]; return total(Layer(x, 4)); }
job tiny { model = Tiny(D = 8); step = train(B = 4, optimizer = adamw); precision = bf16_mixed; }
""")
gpt2 = next(path for path in files if path.endswith("gpt2.stg"))
for arguments in ([gpt2, "--job=pretrain", "--report"], [str(program)], [str(program), "--emit=ast"]):
    for _ in ("first", "again"):
        check(arguments)
message = run(str(program))[2]
assert "program.stg:2:64: error" in message and "nn.stg" in message, message

# Damaged entries are written anew.
whole = read_entries()
for number, (name, entry) in enumerate(whole.items()):
    place = number * 7919 % len(entry)
    (cache / name).write_bytes(entry[:place] + bytes([entry[place] ^ 1]) + entry[place + 1:])
for path in [*files, str(program)]:
    check([path, "--emit=ast"])
assert read_entries() == whole, "damaged entries stay"

# Files with errors of syntax have no entry.
program.write_text("fn f() = 1 < 2 < 3;\n")
for _ in ("first", "again"):
    check([str(program), "--emit=ast"])
assert read_entries() == whole, "a program with errors is kept"

# Another build of the compiler, which differs in its name for itself alone.
code = Path(stagec).read_bytes()
note = struct.pack("<III", 4, 20, 3) + b"GNU\0"
assert code.count(note) == 1
place = code.index(note) + len(note)
other = scratch / "stagec"
other.write_bytes(code[:place] + bytes([code[place] ^ 1]) + code[place + 1:])
other.chmod(0o755)
check([files[0], "--emit=ast"], tool=str(other))
assert len(read_entries()) == len(whole) + 1, "builds share trees"

# Where nothing can be written nothing is said.
check([files[0], "--emit=ast"], home=os.devnull)
check([files[0], "--emit=ast"], home=scratch / "small", limit=64)
assert not any((scratch / "small" / "stagec").iterdir()), "half an entry"
print("no difference")
