"""Checks a site that `stagec doc --html` wrote, without knowing how it was made.

    check_site.py SITE DOCS

Every page of DOCS is there; links lead to files of the site, and their anchors to elements; anchors are GitHub's; nothing
comes from elsewhere; tags are closed; each page is in the navigation once. The search index has the headings of all pages.
The last line is `N pages, M links, K sections, L problems`.
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

VOID = {"meta", "link", "input", "img", "br", "hr"}
site, docs = Path(sys.argv[1]), Path(sys.argv[2])
problems = []


class Page(HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.file, self.name = file, str(file.relative_to(site))
        self.ids, self.links, self.resources, self.open = [], [], [], []
        self.current, self.title, self.headings = 0, "", []
        self.feed(file.read_text())
        self.close()
        if self.open:
            problems.append(f"{self.name}: <{self.open[-1]}> is not closed")

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if tag == "a" and "href" in attrs else []
        self.resources += [attrs[name] for name in ("src", "href") if name in attrs and tag in ("img", "script", "link")]
        self.current += "aria-current" in attrs
        self.headings += [attrs["id"]] if re.fullmatch("h[1-6]", tag) and "id" in attrs else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)  # `<img />`: nothing is to be closed

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            problems.append(f"{self.name}:{self.getpos()[0]}: </{tag}> closes nothing")

    def handle_data(self, data):
        if self.open and self.open[-1] == "title":
            self.title += data


def make_anchors(text):
    """Of the headings of Markdown, as GitHub makes them."""
    text = re.sub(r"^( *)(`{3,}).*?^ *\2`*$", "", text, flags=re.M | re.S)
    anchors = []
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while name in anchors:
            number += 1
            name = f"{anchor}-{number}"
        anchors.append(name)
    return anchors


pages = {file.resolve(): Page(file) for file in sorted(site.rglob("*.html"))}
links = 0
for page in pages.values():
    if len(set(page.ids)) != len(page.ids):
        problems.append(f"{page.name}: the id {max(page.ids, key=page.ids.count)} stands twice")
    if not page.title.removesuffix(" - stagec").strip():
        problems.append(f"{page.name}: no title")
    if page.current != (0 if page.name.startswith("source/") else 1):
        problems.append(f"{page.name}: {page.current} times in the navigation")
    for target in page.links + page.resources:
        if "://" in target:
            if target in page.resources:
                problems.append(f"{page.name}: {target} comes from elsewhere")
            continue
        links += 1
        name, _, anchor = target.partition("#")
        file = (page.file.parent / unquote(name) if name else page.file).resolve()
        if not file.is_file():
            problems.append(f"{page.name}: {target} is no file")
        elif anchor and unquote(anchor) not in pages[file].ids:
            problems.append(f"{page.name}: {target} has no such anchor")
for file in sorted(docs.rglob("*.md")):
    name = file.relative_to(docs).with_suffix(".html")
    name = name.with_name("index.html") if file.name == "README.md" else name
    page = pages.get((site / name).resolve())
    if not page:
        problems.append(f"{name} is missing")
    elif page.headings != make_anchors(file.read_text()):
        wrong = [pair for pair in zip(page.headings, make_anchors(file.read_text())) if pair[0] != pair[1]]
        problems.append(f"{name}: the anchors are not GitHub's: {wrong[:1] or 'one is missing'}")

text = (site / "search-index.js").read_text()
index = json.loads(text.removeprefix("searchIndex = ").removesuffix(";\n"))
found = {(index["pages"][number][0], anchor) for number, anchor, _, _ in index["sections"]}
for page in pages.values():
    if not page.name.startswith("source/"):
        problems += [f"the search knows no {page.name}#{anchor}" for anchor in page.headings if (page.name, anchor) not in found]
for problem in problems:
    print(problem)
print(f"{len(pages)} pages, {links} links, {len(found)} sections, {len(problems)} problems")
sys.exit(1 if problems else 0)
