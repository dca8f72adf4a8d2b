"""Takes the graphs out of docs/internals/IRRef.md and checks that it has all ops, and all rules with their codes."""
import re
import sys
from pathlib import Path

root, out = Path(sys.argv[1]), Path(sys.argv[2])
text = (root / "docs/internals/IRRef.md").read_text()
graphs = re.findall(r"^```sir\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
for i, graph in enumerate(graphs):
    (out / f"{i}.sir").write_text(graph)

ops = re.findall(r'^IR_OP\(\w+, "(\w+)"\)', (root / "include/stage/IR/graph/Ops.def").read_text(), re.MULTILINE)
for op in ops:
    if op != "compute" and f"\n| `{op}` |" not in text:
        sys.exit(f"{op} is not in the table of ops")

rules = re.findall(r"^\* \*\*V(\d+)\*\*", text, re.MULTILINE)
if rules != [str(i + 1) for i in range(len(rules))]:
    sys.exit(f"rules are not numbered in order: {rules}")
definitions = (root / "include/stage/IR/Diagnostics.def").read_text()
verifier = definitions[definitions.index("does not verify"):]
for code in re.findall(r'"(ir-[\w-]+)"', verifier):
    if f"`[{code}]`" not in text:
        sys.exit(f"no rule has the code {code}")
print(f"{len(graphs)} graphs, {len(ops)} ops, {len(rules)} rules")
