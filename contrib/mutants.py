#!/usr/bin/env python3
"""Runs cargo-mutants on a sample of each crate, and fails where more than one mutant in ten survives the crate's own tests.

    contrib/mutants.py [--seed N] [CRATE...]

.cargo/mutants.toml says what is mutated and which tests count, docs/validation/mutants.md what was found. A sample is every n-th
mutant of a crate, some 25 of them; the seed says which.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# Of each crate every n-th mutant.
CRATES = {"rohc": 180, "quinn": 8, "link": 220, "tack": 56, "proto": 372}
MISSED_MAX = 0.1


def run(crate: str, seed: int) -> bool:
    shards = CRATES[crate]
    with tempfile.TemporaryDirectory(prefix=f"mutants-{crate}-") as directory:
        command = ["cargo", "mutants", "--package", f"tacit-{crate}", "--shard", f"{seed % shards}/{shards}"]
        status = subprocess.run([*command, "--colors", "never", "--output", directory], check=False).returncode
        # 2: some survived, 3: some were stopped for their time. All else is no verdict.
        if status not in (0, 2, 3):
            print(f"mutants: {crate}: cargo mutants failed with {status}", file=sys.stderr)
            return False
        seen = json.loads((Path(directory) / "mutants.out" / "outcomes.json").read_text())
    caught, missed = seen["caught"] + seen["timeout"], seen["missed"]
    good = missed <= MISSED_MAX * (caught + missed)
    verdict = "" if good else ": MORE THAN ONE IN TEN"
    print(f"mutants: {crate}: {missed} of {caught + missed} survived{verdict}; {seen['unviable']} did not compile")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=49)
    parser.add_argument("crate", nargs="*", help=f"one of {', '.join(CRATES)}; without any, all of them")
    options = parser.parse_args()
    if unknown := set(options.crate) - set(CRATES):
        parser.error(f"no samples of {', '.join(unknown)}")
    verdicts = [run(crate, options.seed) for crate in options.crate or CRATES]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
