#!/usr/bin/env python3
"""Makes the animation of the README from a page of `tacit explore`.

usage: contrib/animate_explore.py [PROGRAM [DIRECTORY]]

Runs PROGRAM (`tacit`), opens its page in a headless Chromium, zooms from a whole run to single frames, and writes
explore-light.webp and explore-dark.webp to DIRECTORY (docs/pictures). It needs Python 3.10 and `chromium`, no other
package: Chromium encodes each picture, and this script puts them into one file. The run has a seed, so another
machine makes the same pictures, but for the fonts.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXPLORE = ["explore", "wlan-11n-150", "--clients", "2", "--set", "run.duration=1500ms", "--set", "run.measure-from=500ms"]
#: Width and height of the page, in pixels.
SIZE = (900, 650)
#: No buttons, and room for the sentence about a frame.
STYLE = ".tools, .search, header p:nth-of-type(2) { display: none } .status { min-height: 3em }"
#: Functions of the page that the scenes call.
SHARED = "part, pick, search, show, sides, view, wholeRange"
#: Of 100; text stays readable from here on.
QUALITY = 66
#: No picture of a README may be larger, in bytes.
LARGEST = 1_000_000
#: How often the animation runs before it stands still.
LOOPS = 3
#: Pictures of the zoom to some frames and of that to one, and how long each is shown, in milliseconds.
STEPS, CLOSER, STEP_MS = 22, 6, 110


class Browser:
    """A page of a headless Chromium, over the DevTools protocol on two pipes."""

    def __init__(self, profile: str) -> None:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        command += ["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        script = 'exec timeout 300 "$@" 3<&0 4>&1 </dev/null >&2'
        self.process = subprocess.Popen(
            ["sh", "-c", script, "sh", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0
        self.rest = b""
        self.session: str | None = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.process.stdout.fileno(), 1 << 16)
                if not more:
                    raise SystemExit(f"chromium ended at {method}")
                self.rest += more
            said, _, self.rest = self.rest.partition(b"\0")
            answer = json.loads(said)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"chromium: {method}: {answer['error']}")
                return answer["result"]

    def value(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, page: Path, theme: str) -> None:
        width, height = SIZE
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Page.navigate", url=page.as_uri())
        ready = "(async () => { while (document.documentElement?.dataset.ready === undefined) await new Promise((done) => setTimeout(done, 50)); })()"
        self.value(ready)

    def picture(self, top: int = 0) -> bytes:
        """The page below `top` pixels, as a WebP file."""
        # The page draws in the next frame.
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20))))")
        clip = {"x": 0, "y": top, "width": SIZE[0], "height": SIZE[1] - top, "scale": 1}
        shot = self.call("Page.captureScreenshot", format="webp", quality=QUALITY, clip=clip)
        return base64.b64decode(shot["data"])

    def close(self) -> None:
        self.call("Browser.close")
        self.process.wait()


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def coded(picture: bytes) -> bytes:
    """The chunks of a WebP file that code its picture."""
    found, at = b"", 12
    while at < len(picture):
        name, length = struct.unpack_from("<4sI", picture, at)
        if name in (b"ALPH", b"VP8 ", b"VP8L"):
            found += chunk(name, picture[at + 8 : at + 8 + length])
        at += 8 + length + length % 2
    return found


def int24(number: int) -> bytes:
    return struct.pack("<I", number)[:3]


def animation(frames: list[tuple[bytes, int, int]]) -> bytes:
    """An animated WebP file (RFC 9649) of pictures, the pixels above each, and how long each is shown, in milliseconds."""
    width, height = SIZE
    body = chunk(b"VP8X", b"\x02\0\0\0" + int24(width - 1) + int24(height - 1))
    body += chunk(b"ANIM", b"\xff\xff\xff\xff" + struct.pack("<H", LOOPS))
    for picture, top, shown in frames:
        place = int24(0) + int24(top // 2) + int24(width - 1) + int24(height - top - 1)
        # Pictures replace what was there.
        body += chunk(b"ANMF", place + int24(shown) + b"\x02" + coded(picture))
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def open_up(page: Path) -> None:
    """Lets this script call the page's own functions."""
    text = page.read_text(encoding="utf-8")
    start = "start().catch("
    if text.count(start) != 1:
        raise SystemExit(f"animate_explore.py: the page does not begin with {start}")
    text = text.replace(start, f"Object.assign(window, {{ {SHARED} }});\n{start}")
    page.write_text(text.replace("</head>", f"<style>{STYLE}</style></head>", 1), encoding="utf-8")


def scenes(browser: Browser) -> list[tuple[bytes, int, int]]:
    """The whole run, a zoom to a link-layer ACK that carries TCP's, then that frame and what it is."""
    frames = [(browser.picture(), 0, 1_600)]
    # The first Block Ack after the middle that has compressed ACKs; single frames of both schemes are around it.
    found = browser.value(
        """(() => {
            const [from, until] = wholeRange();
            search('hack kind:block-ack');
            const side = sides[1];
            const row = Array.from(view.found[1]).find((row) => side.at[row] > (from + until) / 2);
            search('');
            return { row, at: side.at[row], from, until };
        })()"""
    )
    # The time lines begin here; what is above them stays as it is.
    top = browser.value("Math.floor(part('overview').getBoundingClientRect().top / 2) * 2")
    whole, least = found["until"] - found["from"], 6e6
    for step in range(1, STEPS + 1):
        part = step / STEPS
        length = whole * (least / whole) ** part
        # The frame moves from its place in the run to the middle.
        middle = found["at"] + ((found["from"] + found["until"]) / 2 - found["at"]) * length / whole
        browser.value(f"show(0, {middle - length / 2}, {middle + length / 2})")
        frames.append((browser.picture(top), top, STEP_MS))
    browser.value(f"pick(1, {found['row']})")
    frames.append((browser.picture(), 0, 3_500))
    for step in range(1, CLOSER + 1):
        length = least * (4e5 / least) ** (step / CLOSER)
        browser.value(f"show(0, {found['at'] - length / 2}, {found['at'] + length / 2})")
        frames.append((browser.picture(top), top, STEP_MS if step < CLOSER else 3_500))
    return frames


def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else "tacit"
    directory = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs" / "pictures"
    if not shutil.which("chromium"):
        raise SystemExit("animate_explore.py: no chromium")
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        page = Path(made) / "explore.html"
        subprocess.run([program, *EXPLORE, "-o", page], check=True)
        open_up(page)
        browser = Browser(str(Path(made) / "profile"))
        for theme in ("light", "dark"):
            browser.open(page, theme)
            file = animation(scenes(browser))
            if len(file) > LARGEST:
                raise SystemExit(f"animate_explore.py: {len(file):,} bytes, more than {LARGEST:,}: fewer steps, or a lower quality")
            (directory / f"explore-{theme}.webp").write_bytes(file)
            print(f"{directory / f'explore-{theme}.webp'}: {len(file):,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
