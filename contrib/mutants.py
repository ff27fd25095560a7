#!/usr/bin/env python3
"""Runs cargo-mutants on a sample of each crate, and fails where more than one mutant in ten survives the crate's own tests.

    contrib/mutants.py [--seed N] [CRATE...]
    contrib/mutants.py constants [FILE...]

The second form raises each constant of TACK's law by a quarter, or those of some of its files, which cargo-mutants does not do, and fails
where a constant survives that `LIMITS` does not name.

.cargo/mutants.toml says what is mutated and which tests count, docs/validation/mutants.md what was found. A sample is every n-th
mutant of a crate, some 25 of them; the seed says which.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Of each crate every n-th mutant. Those of the core's protocols are one sample.
PROTOCOLS = ["packet", "congestion", "tcp", "tack-proto", "between"]
CRATES = {"rohc": 180, "quinn": 8, "link": 220, "tack": 56} | dict.fromkeys(PROTOCOLS, 372)
MISSED_MAX = 0.1

# Where TACK's law of losses, rates and clocks is.
LAW = [
    "crates/core/ack/src/clock.rs",
    "crates/core/ack/src/meters.rs",
    "crates/core/tack-proto/src/arrivals.rs",
    "crates/core/tack-proto/src/base_loss.rs",
    "crates/core/tack-proto/src/config.rs",
    "crates/core/congestion/src/bbr/tack.rs",
    "crates/core/congestion/src/bbr/tack/bound.rs",
    "crates/core/congestion/src/bbr/tack/rates.rs",
    "crates/core/congestion/src/bbr/tack/standing.rs",
]
# Bounds of memory, which no result depends on.
LIMITS = {"MARKS", "MAX_RANGES", "MAX_HOLES"}
# Digests of whole runs, which any change breaks, whatever rule it broke.
KNOWN = "known"
CONSTANT = re.compile(r"^(?:pub(?:\(\w+\))? )?const (\w+): [^=]+ =\s+(.*);$", re.M)


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


def raised(value: str) -> str | None:
    """The expression with its first number a quarter larger, rounded up."""
    number = re.search(r"(?<![\w.])\d+(?:_\d+)*", value)
    if not number:
        return None
    larger = -(-int(number.group().replace("_", "")) * 5 // 4)
    return f"{value[: number.start()]}{larger}{value[number.end() :]}"


def constants(names: list[str]) -> bool:
    """Raises one constant after the other in a copy of the last commit, in all files of the law or in those with these names."""
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutants-constants-") as directory:
        archive = subprocess.run(["git", "archive", "HEAD"], check=True, capture_output=True).stdout
        subprocess.run(["tar", "x", "-C", directory], input=archive, check=True)
        command = ["cargo", "test", "--quiet", "--lib", "--test", "tack"]
        command += [f"--package=tacit-{crate}" for crate in ("ack", "congestion", "tack-proto")]
        command += ["--no-fail-fast", "--", "--skip", KNOWN]
        for file in [file for file in LAW if not names or Path(file).name in names]:
            path = Path(directory) / file
            text = path.read_text()
            for found in CONSTANT.finditer(text.split("#[cfg(test)]")[0]):
                name, value = found.groups()
                if name in LIMITS or not (larger := raised(value)):
                    continue
                path.write_text(text[: found.start(2)] + larger + text[found.end(2) :])
                result = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)
                killers = re.findall(r"^    (\w+(?:::\w+)+)$", result.stdout, re.M)
                outcome = killers[0] if killers else "does not compile" if result.returncode else "SURVIVED"
                survivors += outcome == "SURVIVED"
                print(f"constants: {Path(file).name} {name} = {larger} for {value}: {outcome}", flush=True)
            path.write_text(text)
    return survivors == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=49)
    parser.add_argument("crate", nargs="*", help=f"constants and files, or some of {', '.join(CRATES)}; without any, all of them")
    options = parser.parse_args()
    if options.crate[:1] == ["constants"]:
        names = options.crate[1:]
        if unknown := set(names) - {Path(file).name for file in LAW}:
            parser.error(f"no files of the law: {', '.join(unknown)}")
        return 0 if constants(names) else 1
    if unknown := set(options.crate) - set(CRATES):
        parser.error(f"no samples of {', '.join(unknown)}")
    verdicts = [run(crate, options.seed) for crate in options.crate or CRATES]
    if not options.crate:
        verdicts.append(constants([]))
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
