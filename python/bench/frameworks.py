"""Agents of each framework with its own means and with Recto, against a provider that refuses bad requests:

``python3 python/bench/frameworks.py TARGET PROVIDER [FRAMEWORK…]``

``cargo xtask compare frameworks`` runs it. TARGET is the target directory of Cargo, PROVIDER the program
``scripted_provider`` of the crate ``testserver``. A framework is a file ``frameworks_NAME.py`` beside this
one. Each variant runs in a process of its own, which prints one line of JSON.
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

import scenario

import check

# Each with its variants: the first is without any means, the last one is Recto.
FRAMEWORKS = {
    "langchain": (
        "nothing",
        "trim_messages",
        "trim_messages, recto.count_tokens",
        "SummarizationMiddleware",
        "RectoMiddleware, RectoSaver",
    ),
    "agents": ("nothing", "SessionSettings(limit)", "ToolOutputTrimmer", "RectoSession, fit"),
    "pydantic_ai": ("nothing", "ProcessHistory", "RectoContext, RectoConversationStore"),
}
PACKAGES = ["langchain-openai==1.7.1", "tiktoken==0.14.0", "regex==2026.11.9"]


def main() -> int:
    target, provider = Path(sys.argv[1]).resolve(), sys.argv[2]
    python = check.environment(target)
    packed = check.unpack_wheel(python, check.build_wheel(python, target), target)
    variables = {**os.environ, "PYTHONPATH": f"{packed}{os.pathsep}{installed(python, target)}"}
    command = [provider, str(scenario.CALLS), str(scenario.WINDOW)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdin is not None
    url = server.stdout.readline().strip()
    rows = []
    for framework in sys.argv[3:] or FRAMEWORKS:
        for variant in FRAMEWORKS[framework]:
            run = [python, str(HERE / "frameworks.py"), "--run", framework, variant, url]
            done = subprocess.run(run, env=variables, stdout=subprocess.PIPE, check=False)
            if done.returncode:
                sys.exit(f"{framework} with {variant} failed")
            rows.append(json.loads(done.stdout))
    server.stdin.close()
    server.wait()
    print(json.dumps(rows))
    return 0


def installed(python: Path, target: Path) -> Path:
    """Packages that only this comparison needs, in addition to those of the environment."""
    folder = target / "python/compare"
    stamp = folder / "installed.txt"
    wanted = "\n".join(PACKAGES)
    if not stamp.exists() or stamp.read_text() != wanted:
        install = [python, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target"]
        subprocess.run([*install, folder, *PACKAGES], check=True)
        stamp.write_text(wanted)
    return folder


def run(framework: str, variant: str, url: str) -> None:
    check.require_packed()
    module = importlib.import_module(f"frameworks_{framework}")
    with tempfile.TemporaryDirectory() as folder:
        provider = scenario.Provider(f"{url}/{framework}-{variant.encode().hex()}")
        row = module.run(variant, provider, Path(folder))
    print(json.dumps({"framework": module.NAME, "variant": variant, **row}))


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        run(*sys.argv[2:])
    else:
        sys.exit(main())
