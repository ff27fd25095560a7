#!/usr/bin/env python3
"""Mends the links of a book that mdBook made, and finds those that lead nowhere.

usage: packaging/book.py [BOOK]

Links of its pages to files outside of docs/ go to the repository; README.md of a directory is its index.html. Then each
link inside of the book must have its page and its heading, and each picture its file. BOOK is target/book.
"""

from __future__ import annotations

import posixpath
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/tacit-net/tacit"
LINK = re.compile(r'(<(?:a|img|source|link|script)\b[^>]*?\s(?:href|src|srcset)=")([^"]*)(")')


class Page(HTMLParser):
    """The links of a page, and what they may lead to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.places.add(value)
            elif name in ("href", "src", "srcset") and tag in ("a", "img", "source", "link", "script"):
                self.links.append(value)


def mended(link: str, page: str) -> str:
    """Where a link on `page` should lead. Paths are relative to docs/, as those of the book."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), parts.path))
    place = f"#{parts.fragment}" if parts.fragment else ""
    if not target.startswith("../"):
        # mdBook renames the file, not the links from other pages.
        return re.sub(r"(^|/)README\.html$", r"\1index.html", parts.path) + place
    outside = target[3:]
    if outside.endswith(".html") and not (ROOT / outside).exists():
        outside = outside[: -len("html")] + "md"
    kind = "tree" if (ROOT / outside).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{outside}{place}"


def main() -> None:
    book = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target" / "book"
    pages: dict[str, Page] = {}
    for file in sorted(book.rglob("*.html")):
        name = file.relative_to(book).as_posix()
        text = file.read_text(encoding="utf-8")
        text = LINK.sub(lambda found, name=name: found[1] + mended(found[2], name) + found[3], text)  # type: ignore[misc]
        file.write_text(text, encoding="utf-8")
        pages[name] = Page(text)
    faults, count = [], 0
    for name, page in pages.items():
        # It serves every address that does not exist.
        if name == "404.html":
            continue
        for link in page.links:
            count += 1
            parts = urlsplit(link)
            if link.startswith(REPOSITORY + "/"):
                outside = ROOT / unquote(re.sub(r"^/[^/]+/[^/]+/(blob|tree|edit)/main/", "", parts.path))
                if re.search(r"/(blob|tree|edit)/main/", parts.path) and not outside.exists():
                    faults.append(f"{name}: {link}: not in the repository")
                continue
            if parts.scheme or parts.netloc:
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
            if target.startswith("..") or not (book / target).exists():
                faults.append(f"{name}: {link}: no such page or file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                faults.append(f"{name}: {link}: no such heading")
    if faults:
        sys.exit("\n".join([*faults, f"{len(faults)} of {count:,} links are dead"]))
    print(f"{count:,} links of {len(pages)} pages: none is dead")


if __name__ == "__main__":
    main()
