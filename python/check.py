"""Builds the package and runs all of its checks: ``python3 check.py TARGET [OPTION]``.

TARGET is the target directory of Cargo. The virtual environment is in ``TARGET/python/venv``; its
packages are installed again when ``requirements-dev.txt`` changes. ``cargo xtask test`` runs this. With
``--lowest``, only the tests that use a framework run, with the lowest supported versions
(``requirements-lowest.txt``), in ``TARGET/python/venv-lowest``. With ``--python PROGRAM``, only the tests
that need no framework run, with that interpreter, in
``TARGET/python/venv-bare``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# The tests that need no framework.
BARE_TESTS = ("cancellation", "conformance", "fit", "names", "processes", "store", "types")
# The tests that use no framework, also if there is one.
WITHOUT_FRAMEWORK = ("conformance", "names", "processes", "store", "types")


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], cwd=HERE, text=True, check=False, **options
    )  # type: ignore[call-overload]


def interpreter(home: Path) -> Path:
    """The interpreter of a virtual environment."""
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def environment(target: Path, *, name: str = "", program: str | None = None) -> Path:
    """The interpreter of a virtual environment, with the packages of its requirements file.

    ``program`` is the interpreter that creates the environment; by default the one that runs this file.
    """
    home = target / "python" / (f"venv-{name}" if name else "venv")
    python = interpreter(home)
    if not python.exists() and program:
        run(program, "-m", "venv", home)
    elif not python.exists():
        venv.create(home, with_pip=True, symlinks=os.name != "nt")
    install_requirements(python, name or "dev", home)
    return python


def install_requirements(python: Path, name: str, folder: Path, *options: str | Path) -> None:
    """Installs the packages of a requirements file, unless ``folder`` has a stamp of this file."""
    requirements = HERE / f"requirements-{name}.txt"
    stamp = folder / "requirements.sha256"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *options]
    if run(*command, "-r", requirements).returncode:
        sys.exit(f"the packages of {requirements.name} cannot be installed")
    stamp.write_text(wanted)


def install(python: Path, variables: dict[str, str]) -> bool:
    """Builds the native module and makes the package importable in the environment.

    It is built together with the tests of the workspace. Otherwise cargo would compile its dependencies
    once more, with other features.
    """
    find = (
        "import sysconfig as s; "
        "print(s.get_path('purelib'), s.get_config_var('Py_GIL_DISABLED') or 0, "
        "s.get_config_var('EXT_SUFFIX'), sep='\\n')"
    )
    found = run(python, "-c", find, stdout=subprocess.PIPE).stdout.splitlines()
    packages, is_free_threaded, suffix = found[0], found[1] == "1", found[2]
    build = {**variables}
    if is_free_threaded:
        # There is no stable ABI without the GIL: the module is built for this interpreter.
        build["PYO3_PYTHON"] = str(python)
    elif os.name != "nt":
        suffix = ".abi3.so"
    options = ["--workspace", "--all-features", "--lib", "--tests", "--message-format", "json"]
    built = run("cargo", "build", "--quiet", *options, env=build, stdout=subprocess.PIPE)
    if built.returncode:
        return False
    messages = (json.loads(line) for line in built.stdout.splitlines())
    artifacts = [message for message in messages if message["reason"] == "compiler-artifact"]
    library = next(it["filenames"][0] for it in artifacts if it["target"]["name"] == "_recto")
    programs = {it["target"]["name"]: it["executable"] for it in artifacts if is_program(it)}
    # For the fresh cases of tests/test_conformance.py, and the schema in tests/test_types.py.
    variables["RECTO_RANDOM_CASES"] = programs["random-cases"]
    variables["RECTO_PROGRAM"] = programs["recto"]
    shutil.copyfile(library, HERE / "recto" / f"_recto{suffix}")
    (Path(packages) / "recto-context.pth").write_text(f"{HERE}\n")
    return True


def is_program(artifact: dict[str, Any]) -> bool:
    """Whether cargo has built a program, and not its tests."""
    return artifact["target"]["kind"] == ["bin"] and not artifact["profile"]["test"]


def build_wheel(python: Path, target: Path) -> Path:
    """Builds the wheel with the profile ``dist``, as it is published."""
    wheels = target / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    maturin = [python.parent / "maturin", "build", "--profile", "dist", "--locked", "--out", wheels]
    built = run(
        *maturin,
        "--compression-level",
        "9",
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        capture_output=True,
    )
    if built.returncode:
        sys.exit(f"maturin cannot build the wheel:\n{built.stderr}")
    return next(wheels.glob("recto_context-*.whl"))


def unpack_wheel(python: Path, wheel: Path, target: Path) -> Path:
    """Installs the wheel in an empty folder. Its dependencies are the packages of the environment."""
    packed = target / "python" / "packed"
    shutil.rmtree(packed, ignore_errors=True)
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--target", packed, wheel]
    if run(*install).returncode:
        sys.exit(f"{wheel.name} cannot be installed")
    return packed


def require_packed() -> None:
    """Ends the process if ``recto`` is not the package of the wheel."""
    import recto

    if Path(recto.__file__ or "").is_relative_to(HERE):
        sys.exit(f"{recto.__file__} is not the package of the wheel")


def counted(output: str) -> dict[str, int]:
    """The numbers of the last line of pytest: ``passed``, ``failed``, ``skipped`` and ``error``."""
    found = re.findall(r"(\d+) (passed|failed|skipped|error)", output)
    return {word: int(number) for number, word in found}


def summary(passed: int, failed: int, skipped: int) -> str:
    """The line that ``cargo test`` prints, for the summary of ``cargo xtask test``."""
    state = "FAILED" if failed else "ok"
    return f"test result: {state}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured"


def main() -> int:
    target = Path(sys.argv[1]).resolve()
    lowest = "--lowest" in sys.argv[2:]
    program = sys.argv[3] if sys.argv[2:3] == ["--python"] else None
    name = "lowest" if lowest else "bare" if program else ""
    python = environment(target, name=name, program=program)
    variables = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    variables["VIRTUAL_ENV"] = str(python.parents[1])
    variables["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    variables.pop("PYTHONPATH", None)

    if not install(python, variables):
        return 1
    checks: list[list[str]] = [
        ["ruff", "format", "--check", "--quiet", "."],
        ["ruff", "check", "--quiet", "."],
        [str(python), "make_async.py", "--check"],
        [str(python), "make_reference.py", "--check"],
        [str(python), "-m", "mypy.stubtest", "recto._recto"],
        ["pyright", "--pythonpath", str(python)],
    ]
    if name:
        checks.clear()
    failed = 0
    for check in checks:
        done = run(*check, env=variables, capture_output=True)
        if done.returncode:
            failed += 1
            print(f"{' '.join(check)} failed:\n{done.stdout}{done.stderr}")
    chosen = [f"tests/test_{name}.py" for name in BARE_TESTS] if program else []
    if lowest:
        chosen = [f"--ignore=tests/test_{name}.py" for name in WITHOUT_FRAMEWORK]
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
    tests = run(*pytest, env=variables, capture_output=True)
    print(tests.stdout + tests.stderr)
    count = counted(tests.stdout)
    failed += count.get("failed", 0) + count.get("error", 0)
    if tests.returncode and not failed:
        failed = 1
    print(summary(count.get("passed", 0) + len(checks), failed, count.get("skipped", 0)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
