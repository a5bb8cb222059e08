"""Turn SVG files of matplotlib into small parts of one page, whose colours and font they take."""

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

from mcverify.verdict import COLOURS

# What a colour of a picture is called in the page's style sheet, which has a dark one for each.
NAMES = {colour: f"var(--{verdict.lower()})" for verdict, colour in COLOURS.items()} | {
    "#000000": "var(--ink)", "#ffffff": "var(--paper)", "#4c4c4c": "var(--soft)",
    "#8c8c8c": "var(--edge)", "#d9d9d9": "var(--band)", "#e6e6e6": "var(--grid)"}


class Part(NamedTuple):
    """A picture as SVG, and as a second showing of the one that stands in the same page."""

    svg: str
    again: str


class Sheet:
    """The styles that the pictures of a page share, since most of an SVG file is repeated styles.

    >>> sheet, file = Sheet(), '<svg viewBox="0 0 9 9"><g id="a"><path d="M 1.26 2 \\nL 3 4" '
    >>> sheet.part(file + 'style="fill: #000000"/></g></svg>', "a line").svg
    '<svg viewBox="0 0 9 9" role="img" aria-label="a line" style="max-width:12px;min-width:10px"><g id="fig-0"><path d="M1.3 2L3 4" class="s0" /></g></svg>'
    >>> sheet.css()
    '.s0{fill:var(--ink)}'
    """  # noqa: E501

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}
        self._parts = 0

    def part(self, text: str, alt: str) -> Part:
        """A file's picture, with what it shows in words for who does not see it."""
        name = f"fig-{self._parts}"
        self._parts += 1
        # XML knows no control characters, which a setting may hold.
        text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\N{REPLACEMENT CHARACTER}", text)
        text = re.sub(r"<metadata>.*?</metadata>", "", text, count=1, flags=re.DOTALL)
        root = ET.fromstring(re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:", ""))
        self._slim(root, {}, name)
        box = root.attrib["viewBox"]
        # 9 pt are 12 px, and 10 px can still be read.
        width = float(box.split()[2]) * 4 / 3
        root.attrib = {"viewBox": box, "role": "img", "aria-label": alt,
                       "style": f"max-width:{width:.0f}px;min-width:{0.8 * width:.0f}px"}
        whole = ET.Element("g", {"id": name})
        whole.extend(root)
        root[:] = [whole]
        svg = ET.tostring(root, encoding="unicode")
        root[:] = [ET.Element("use", {"href": f"#{name}"})]
        return Part(svg, ET.tostring(root, encoding="unicode"))

    def css(self) -> str:
        """The style sheet of all pictures so far."""
        return "".join(f".{name}{{{style}}}" for style, name in self._classes.items())

    def _slim(self, node: ET.Element, ids: dict[str, str], name: str) -> None:
        """Leave out what changes no pixel: names, single groups, digits; join paths of one look."""
        kept: list[ET.Element] = []
        for child in list(node):
            if child.tag != "style" and child.get("style") != "fill: none":
                self._slim(child, ids, name)
                self._shorten(child, ids, name)
                for each in child if child.tag == "g" and not child.attrib else [child]:
                    if _seen(each) and not _joined(kept, each):
                        kept.append(each)
        node.text = node.text and node.text.strip()
        node[:] = kept

    def _shorten(self, node: ET.Element, ids: dict[str, str], name: str) -> None:
        """Rewrite the attributes of one element."""
        digits = 2 if node.get("id") else 1  # of a marker, which is small
        node.tail = None
        if node.tag == "g":
            node.attrib.pop("id", None)
        if node.get("transform", "").startswith("rotate(-0 "):
            del node.attrib["transform"]
        for key, value in node.attrib.items():
            if key == "id":
                value = _renamed(value, ids, name)
            elif key in ("href", "clip-path"):
                value = re.sub(r"#(\w+)", lambda m: "#" + _renamed(m[1], ids, name), value)
            elif key != "style":
                value = re.sub(r"-?\d+\.\d+", lambda m: f"{round(float(m[0]), digits):g}", value)
            if key == "d":
                value = re.sub(r"\s*([A-Za-z])\s*", r"\1", value.strip())
            node.attrib[key] = value
        if style := _themed(node.attrib.pop("style", "")):
            node.set("class", self._classes.setdefault(style, f"s{len(self._classes)}"))


def _renamed(value: str, ids: dict[str, str], name: str) -> str:
    """A short name, of which there is no second in the page."""
    return ids.setdefault(value, f"{name}-{len(ids)}")


def _themed(style: str) -> str:
    """A style with the page's font and the page's names of colours; others are lighter on dark."""
    style = re.sub(r"font-family:[^;]*;?\s*", "", style)
    style = re.sub(r"#[0-9a-f]{6}", lambda m: NAMES.get(m[0]) or (
        f"light-dark({m[0]},color-mix(in oklab,{m[0]} 55%,#fff))"), style)
    return re.sub(r"\s*([:;])\s*", r"\1", style)


def _joined(kept: list[ET.Element], path: ET.Element) -> bool:
    """Whether the path could be made a part of the last one, which looks the same."""
    last = kept[-1] if kept else None
    if last is None or not last.tag == path.tag == "path" or "id" in path.attrib:
        return False
    if {**last.attrib, "d": ""} != {**path.attrib, "d": ""}:
        return False
    last.set("d", last.attrib["d"] + path.attrib["d"])
    return True


def _seen(node: ET.Element) -> bool:
    """Whether there is anything to see: no empty group, and no path that goes nowhere."""
    if node.tag in ("g", "defs", "text"):
        return bool(len(node) or node.text)
    return node.tag != "path" or re.search("[LCHVQ]", node.get("d", "")) is not None
