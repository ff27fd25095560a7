"""Sweeps on a Dask cluster: ``tacit sweep --dask ADDRESS`` runs this."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from . import _native
from ._sweep import complete

def main(arguments: Sequence[str] | None = None) -> int:
    """The command line's words, after ``python -m tacit.dask``."""
    parser = argparse.ArgumentParser(prog="tacit sweep --dask", description=__doc__)
    parser.add_argument("address", help="of the scheduler, such as tcp://10.0.0.1:8786")
    parser.add_argument("scenario", nargs="?", default=_native.DEFAULT_SCENARIO)
    parser.add_argument("--sweep", action="append", default=[], metavar="KEY=VALUE,…")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--schemes", default="", metavar="NAME,…")
    parser.add_argument("--clients", default="", metavar="N,…")
    parser.add_argument("--seeds", type=int, metavar="N")
    parser.add_argument("--out", default="tacit-sweep", metavar="DIR")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    from distributed import Client

    try:
        native = _native.Sweep(
            asked.scenario,
            asked.set,
            _native.grid(asked.sweep),
            schemes=[name for name in asked.schemes.split(",") if name],
            own=[],
            clients=[int(count) for count in asked.clients.split(",") if count],
            seeds=asked.seeds,
            directory=asked.out,
        )
        with Client(asked.address, timeout="10s") as client:
            swept = complete(native, Path(asked.out), client, cache=True, progress=None)
    except _native.TacitError as error:
        print(f"tacit: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"tacit: --dask {asked.address}: {error}; allowed: the address of a running scheduler", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"tacit: interrupted; the same command resumes it in {asked.out}", file=sys.stderr)
        return 130
    if asked.json:
        told = {"directory": asked.out, "runs": swept.runs, "reused": swept.reused, "files": swept.files}
        print(json.dumps(told, indent=2))
    else:
        print(f"{swept.runs} runs in {swept.files} files, {swept.reused} of them there already")
        print(f"results: {swept.runs_directory}/**/*.parquet", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
