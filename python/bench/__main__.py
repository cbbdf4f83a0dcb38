"""Measures the Python package: ``python3 python/bench TARGET [PART…]``. ``cargo xtask bench bindings`` runs it.

TARGET is the target directory of Cargo. The wheel is built with the profile ``dist`` and installed in
``TARGET/python/packed``; the frameworks are those of ``requirements-dev.txt``. Each part is a file beside
this one with a function ``rows``, and runs in a process of its own. A missed limit is a failure.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# Last, because the folder also has the package with a module of a development build.
sys.path.append(str(HERE.parent))

from table import Row, printed

import check

PARTS = ("calls", "langgraph_saver", "agents_session")
MAX_WHEEL_BYTES = 8_000_000


def main() -> int:
    target = Path(sys.argv[1]).resolve()
    parts = sys.argv[2:] or list(PARTS)
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        sys.exit(f"there is no part {unknown[0]}; use {', '.join(PARTS)}")
    python = check.environment(target)
    wheel = check.build_wheel(python, target)
    packed = check.unpack_wheel(python, wheel, target)
    size = wheel.stat().st_size
    rows = [Row(f"wheel {wheel.name}", size, "B", "", MAX_WHEEL_BYTES, 1)]
    variables = {**os.environ, "PYTHONPATH": str(packed)}
    for part in parts:
        command = [python, str(HERE), "--part", part]
        done = subprocess.run(
            command, env=variables, stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"the part {part} failed")
        rows += [Row(*values) for values in json.loads(done.stdout)]
    print(printed(rows))
    missed = [row.name for row in rows if not row.met]
    if missed:
        print(f"missed: {len(missed)} of {sum(row.limit is not None for row in rows)} limits")
    return 1 if missed else 0


def measure(part: str) -> None:
    check.require_packed()
    with tempfile.TemporaryDirectory() as folder:
        rows = importlib.import_module(part).rows(Path(folder))
    print(json.dumps(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        measure(sys.argv[2])
    else:
        sys.exit(main())
