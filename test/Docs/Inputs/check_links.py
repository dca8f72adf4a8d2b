"""Checks the pages of a folder: links and pictures lead to files, anchors to headings or terms, and the index names every page.

    check_links.py FOLDER

A transcript that shows an error must say so with `exit=1`, because a pipe hides the exit code.
The last line is `N links of M pages, K problems`.
"""

import re
import sys
from pathlib import Path

folder = Path(sys.argv[1])
pages = sorted(folder.glob("*.md"))
links, problems = 0, []


def anchors(page):
    """As GitHub makes them: lower case, without punctuation, spaces as hyphens; and those that a page gives to a term."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return set(re.findall(r'<a id="([^"]+)"></a>', text)) | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


for page in pages:
    text = page.read_text()
    for block in re.findall(r"^```console *([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        if "exit=" not in block[0] and re.search(r"^\S*:\d+:\d+: error: ", block[1].replace("wrong.stg", " "), re.M):
            problems.append(f"{page.name} shows an error")
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    text = re.sub(r"^>.*$", "", text, flags=re.M)
    text = re.sub(r"`[^`]*`", "", text)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if "://" in target:
            continue
        links += 1
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists():
            problems.append(f"{page.name}: {target} is no file")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            problems.append(f"{page.name}: {target} has no such heading")
index = (folder / "README.md").read_text()
problems += [f"README.md lacks {page.name}" for page in pages if page.name != "README.md" and not re.search(rf"\]\({page.name}[)#]", index)]
for problem in problems:
    print(problem)
print(f"{links} links of {len(pages)} pages, {len(problems)} problems")
sys.exit(1 if problems else 0)
