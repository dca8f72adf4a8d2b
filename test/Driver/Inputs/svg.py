#!/usr/bin/env python3
"""Checks that an SVG is well-formed and needs nothing else, and prints its texts, boxes by colour, and its size."""
import collections
import sys
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
content = open(sys.argv[1]).read()
root = ElementTree.fromstring(content)
assert root.tag == SVG + "svg" and "href" not in content and "url(" not in content
width, height = int(root.get("width")), int(root.get("height"))
boxes, numbers = collections.Counter(), collections.Counter()
for element in root.iter():
    if element.tag == SVG + "rect" and element.get("width") != "100%":
        assert float(element.get("x")) >= 0 and float(element.get("x")) + float(element.get("width")) <= width
        assert int(element.get("y")) >= 0 and int(element.get("y")) + int(element.get("height")) <= height
    if element.tag == SVG + "text":
        if element.text.replace(".", "").isdigit():
            numbers[element.text] += 1
        else:
            print(element.text)
for group in list(root.iter(SVG + "g")) + [root]:
    for element in group.findall(SVG + "rect"):
        boxes[element.get("fill") or group.get("fill")] += 1
for colour, count in boxes.items():
    print(f"{colour}: {count} boxes")
for text, count in numbers.items():
    print(f"text '{text}': {count}")
limit = next(limit for limit in (100_000, 2_000_000) if len(content) <= limit)
print(f"at most {limit} bytes")
