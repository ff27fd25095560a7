#!/usr/bin/env python3
"""An OCI image of the static program, and nothing else.

usage: packaging/image.py make PROGRAM VERSION ARCHIVE    writes an image as an OCI archive
       packaging/image.py check ARCHIVE                   reads one back, and starts it in an empty root

It needs no container engine and no other package: `podman load`, `skopeo copy oci-archive:…` and others read the file.
The same program makes the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import roots

ROOT = Path(__file__).resolve().parents[1]
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
#: Names of processors, as images have them.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
#: Texts that go with the program, and their places.
TEXTS = {"LICENSE-MIT": "usr/share/doc/tacit/LICENSE-MIT", "LICENSE-APACHE": "usr/share/doc/tacit/LICENSE-APACHE"}


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def add(archive: tarfile.TarFile, name: str, content: bytes | None, mode: int) -> None:
    """A file, or a directory where there is no content, of root's and of no date."""
    entry = tarfile.TarInfo(name)
    entry.mode = mode
    if content is None:
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    else:
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))


def layer(program: bytes) -> bytes:
    files = {name: (ROOT / source).read_bytes() for source, name in TEXTS.items()}
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for directory in ("usr", "usr/bin", "usr/share", "usr/share/doc", "usr/share/doc/tacit", "work"):
            add(archive, directory, None, 0o755)
        add(archive, "tmp", None, 0o1777)
        add(archive, "usr/bin/tacit", program, 0o755)
        for name, content in files.items():
            add(archive, name, content, 0o644)
    return written.getvalue()


def make(program: Path, version: str, to: Path) -> None:
    plain = layer(program.read_bytes())
    packed = gzip.compress(plain, 9, mtime=0)
    architecture = ARCHITECTURES[platform.machine()]
    labels = {
        "org.opencontainers.image.title": "tacit",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.source": "https://github.com/tacit-net/tacit",
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    }
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": ["/usr/bin/tacit"], "Env": ["PATH=/usr/bin", "HOME=/tmp"], "WorkingDir": "/work", "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [digest(plain)]},
    }
    blobs: dict[str, bytes] = {}

    def blob(kind: str, content: bytes) -> dict[str, Any]:
        blobs[digest(content)] = content
        return {"mediaType": kind, "digest": digest(content), "size": len(content)}

    def text(value: Any) -> bytes:
        return json.dumps(value, sort_keys=True).encode()

    parts = {"config": blob(CONFIG, text(config)), "layers": [blob(LAYER, packed)]}
    manifest = blob(MANIFEST, text({"schemaVersion": 2, "mediaType": MANIFEST, **parts}))
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version}
    with tarfile.open(to, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        add(archive, "oci-layout", text({"imageLayoutVersion": "1.0.0"}), 0o644)
        add(archive, "index.json", text({"schemaVersion": 2, "manifests": [manifest]}), 0o644)
        add(archive, "blobs", None, 0o755)
        add(archive, "blobs/sha256", None, 0o755)
        for name, content in sorted(blobs.items()):
            add(archive, "blobs/" + name.replace(":", "/"), content, 0o644)
    print(f"{to}: {to.stat().st_size:,} bytes, {architecture}")


def check(path: Path) -> None:
    """Follows the digests from the index to the layers, as an engine does, and starts what they make."""
    with tarfile.open(path) as archive:

        def read(name: str) -> bytes:
            file = archive.extractfile(name)
            if file is None:
                raise SystemExit(f"{path}: {name} is no file")
            return file.read()

        def follow(part: dict[str, Any]) -> bytes:
            content = read("blobs/" + part["digest"].replace(":", "/"))
            if (digest(content), len(content)) != (part["digest"], part["size"]):
                raise SystemExit(f"{path}: {part['digest']} is not what its name says")
            return content

        (first,) = json.loads(read("index.json"))["manifests"]
        manifest = json.loads(follow(first))
        config = json.loads(follow(manifest["config"]))
        layers = [gzip.decompress(follow(part)) for part in manifest["layers"]]
    if [digest(plain) for plain in layers] != config["rootfs"]["diff_ids"]:
        raise SystemExit(f"{path}: its layers are not those of its configuration")
    with tempfile.TemporaryDirectory() as root:
        for plain in layers:
            with tarfile.open(fileobj=io.BytesIO(plain)) as files:
                files.extractall(root)
        environment = dict(line.split("=", 1) for line in config["config"]["Env"])
        for arguments in (["--version"], ["compare", "--quick", "--no-report", "--clients", "1"]):
            print(roots.run(Path(root), [*config["config"]["Entrypoint"], *arguments], environment).splitlines()[0])


def main() -> None:
    words = sys.argv[1:]
    if len(words) == 4 and words[0] == "make":
        make(Path(words[1]), words[2], Path(words[3]))
    elif len(words) == 2 and words[0] == "check":
        check(Path(words[1]))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
