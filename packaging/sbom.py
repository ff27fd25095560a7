#!/usr/bin/env python3
"""The components of the program, as a software bill of materials: CycloneDX 1.6.

usage: packaging/sbom.py TARGET >FILE

Cargo says what is compiled into `tacit` for this target: name, version, licence, where it is from, its SHA-256 and what it uses.
Crates that only build or test are not in it. Equal sources give equal bytes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def cargo(*arguments: str) -> str:
    return subprocess.run(["cargo", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def compiled_in(target: str) -> set[tuple[str, str]]:
    """Names and versions of the crates that the program's own features bring."""
    said = cargo("tree", "--locked", "--package", "tacit", "--target", target, "--edges", "normal,no-proc-macro", "--prefix", "none")
    found = (re.match(r"(\S+) v(\S+)", line) for line in said.splitlines())
    return {(crate[1], crate[2]) for crate in found if crate}


def checksums() -> dict[tuple[str, str], str]:
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    found = re.findall(r'name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"', lock)
    return {(name, version): checksum for name, version, checksum in found}


def component(package: dict[str, Any], sums: dict[tuple[str, str], str]) -> dict[str, Any]:
    name, version = package["name"], package["version"]
    purl = f"pkg:cargo/{name}@{version}"
    made: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if package["license"]:
        # Some crates have a slash, which older versions of Cargo took for OR.
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ").replace("  ", " ")}]
    if (name, version) in sums:
        made["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    wanted, sums = compiled_in(sys.argv[1]), checksums()
    said = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", sys.argv[1]))
    packages = {package["id"]: package for package in said["packages"] if (package["name"], package["version"]) in wanted}
    missing = wanted - {(package["name"], package["version"]) for package in packages.values()}
    if missing:
        raise SystemExit(f"sbom.py: cargo names these crates, and does not describe them: {sorted(missing)}")
    made = {identity: component(package, sums) for identity, package in packages.items()}
    (program,) = (identity for identity, package in packages.items() if package["name"] == "tacit")
    uses = [
        {
            "ref": made[node["id"]]["bom-ref"],
            "dependsOn": sorted(
                made[used["pkg"]]["bom-ref"]
                for used in node["deps"]
                if used["pkg"] in made and any(kind["kind"] is None for kind in used["dep_kinds"])
            ),
        }
        for node in said["resolve"]["nodes"]
        if node["id"] in made
    ]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**made.pop(program), "type": "application"}},
        "components": sorted(made.values(), key=lambda part: part["bom-ref"]),
        "dependencies": sorted(uses, key=lambda part: part["ref"]),
    }
    json.dump(bill, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
