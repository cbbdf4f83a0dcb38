"""Runs the slow tests of the package: ``python3 frameworks.py TARGET [PART…]``.

TARGET is the target directory of Cargo. ``check.py`` must have run before. The parts are:

- ``agents``: the session tests of the OpenAI Agents SDK, with RectoSession;
- ``langgraph``: LangGraph's own tests, with RectoSaver around its SQLite saver;
- ``lowest``: the tests of this package with the lowest supported versions of the frameworks;
- ``packed``: the wheel as it is published, in empty environments of several versions of Python, and
  ``pip install ./python``;
- ``free-threaded``: the tests that need no framework, with an interpreter without the GIL. It runs only if
  it is named, or if there is such an interpreter. If it is named and there is none, CPython is compiled
  from its source package (two minutes of processor time, a C compiler and zlib's headers).

The tests of the frameworks are downloaded; they are not part of this repository.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

import check

PARTS = ("agents", "langgraph", "lowest", "packed", "free-threaded")
MAX_WHEEL_BYTES = 8_000_000
PACKAGES = ["openai_agents-0.24.0", "langgraph-1.2.20"]
# The source package of Ubuntu: it is python.org's archive.
CPYTHON = "http://archive.ubuntu.com/ubuntu/pool/main/p/python3.14/python3.14_3.14.4.orig.tar.xz"
CPYTHON_SHA256 = "d923c51303e38e249136fc1bdf3568d56ecb03214efdef48516176d3d7faaef8"
# It expects metadata of a newer langchain-core, and fails without RectoSaver too.
FAILS_WITHOUT_US = "tests/test_large_cases.py::test_weather_subgraph"
SWAPPED_SESSION = '''
import pytest
import tests.memory.test_session as upstream
from recto import Store
from recto.openai_agents import RectoSession

_stores = {}


class Swapped(RectoSession):
    def __init__(self, session_id, db_path=":memory:", session_settings=None, **options):
        key = str(db_path)
        store = None if key == ":memory:" else _stores.get(key)
        if store is None:
            store = Store.open("memory:")
            _stores[key if key != ":memory:" else object()] = store
        super().__init__(session_id, store, session_settings=session_settings)

    def close(self):
        pass


@pytest.fixture(autouse=True)
def swap(monkeypatch):
    monkeypatch.setattr(upstream, "SQLiteSession", Swapped)
    yield
    _stores.clear()


GENERIC = """
test_session_memory_basic_functionality_parametrized
test_session_memory_with_explicit_instance_parametrized
test_session_memory_disabled_parametrized
test_session_memory_different_sessions_parametrized
test_sqlite_session_memory_direct test_sqlite_session_memory_pop_item
test_session_memory_pop_different_sessions test_sqlite_session_get_items_with_limit
test_session_memory_appends_list_input_by_default test_session_callback_prepared_input
test_session_callback_repeating_history_does_not_grow_session
test_sqlite_session_unicode_content test_sqlite_session_special_characters_and_sql_injection
test_sqlite_session_concurrent_access test_session_add_items_exception_propagates_in_streamed
test_session_settings_default test_session_settings_constructor
test_get_items_uses_session_settings_limit test_get_items_explicit_limit_overrides_session_settings
test_session_settings_resolve test_runner_with_session_settings_override
"""
for name in GENERIC.split():
    globals()[name] = getattr(upstream, name)
'''
SWAPPED_SAVER = """

@contextmanager
def _checkpointer_sqlite():
    from recto import Store
    from recto.langgraph import RectoSaver

    with SqliteSaver.from_conn_string(":memory:") as inner:
        yield RectoSaver(inner, Store.open("memory:"), counter="approx")
"""


USES_THE_PACKAGE = """
import pathlib, sys
import recto

assert pathlib.Path(recto.__file__).is_relative_to(sys.prefix), recto.__file__
for name in ("py.typed", "_recto.pyi"):  # type checkers read the types of a package only with these
    assert (pathlib.Path(recto.__file__).parent / name).is_file(), name
for turn in range(2):
    with recto.Store.open("sqlite:recto.db") as store:
        conversation = store.conversation("support", create=True)
        conversation.append({"role": "user", "content": f"turn {turn}"})
        assert conversation.version() == turn + 1
        assert store.verify()["sound"]
messages = [{"role": "user", "content": f"message {at}"} for at in range(50)]
assert len(recto.fit(messages, 30).messages) == 5, recto.fit(messages, 30)
assert recto.count_tokens("hello world") == 2
print(sys.version.split()[0])
"""


def main() -> int:
    target = Path(sys.argv[1]).resolve()
    chosen = sys.argv[2:] or list(PARTS)
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        sys.exit(f"there is no part {unknown[0]}; use {', '.join(PARTS)}")
    passed = failed = 0
    for part in chosen:
        begin = time.monotonic()
        if part == "lowest":
            counts = lowest(target)
        elif part == "packed":
            counts = packed(target)
        elif part == "free-threaded":
            counts = free_threaded(target, is_named=part in sys.argv[2:])
        else:
            counts = suite(target, part)
        print(f"{part} took {time.monotonic() - begin:.0f} s", flush=True)
        passed, failed = passed + counts[0], failed + counts[1]
    print(check.summary(passed, failed, 0))
    return 1 if failed else 0


# The frameworks' own suites


def suite(target: Path, part: str) -> tuple[int, int]:
    """Runs the suite of a framework. Returns the numbers of passed and failed tests."""
    python = check.environment(target)
    folder = target / "python/frameworks"
    folder.mkdir(parents=True, exist_ok=True)
    # Not in the environment, so that the package's own tests run without the plugins of these packages.
    packages = folder / "packages"
    check.install_requirements(python, "frameworks", packages, "--no-deps", "--target", packages)
    for package in PACKAGES:
        file = folder / f"{package}.tar.gz"
        if not file.exists():
            download = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
            name, version = package.rsplit("-", 1)
            subprocess.run([*download, "--dest", folder, f"{name}=={version}"], check=True)
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")
    variables = {**os.environ, "NO_DOCKER": "true", "LANGSMITH_TRACING": "false"}
    variables["PYTHONPATH"] = str(packages)
    if part == "agents":
        tests = folder / "openai_agents-0.24.0"
        (tests / "tests/test_recto_session.py").write_text(SWAPPED_SESSION)
        arguments = ["tests/test_recto_session.py"]
    else:
        tests = folder / "langgraph-1.2.20"
        fixtures = tests / "tests/conftest_checkpointer.py"
        fixtures.write_text(fixtures.read_text() + SWAPPED_SAVER)
        only = "sqlite and not aio and not aes"
        arguments = ["tests", "-k", only, "--deselect", FAILS_WITHOUT_US]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=tests, env=variables, capture_output=True, text=True, check=False
    )
    print(tests.name, re.findall(r"^.*(?:passed|failed|error).*$", done.stdout, re.MULTILINE)[-1:])
    count = check.counted(done.stdout)
    failed = count.get("failed", 0) + count.get("error", 0)
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:])
        failed = max(failed, 1)
    return count.get("passed", 0), failed


def lowest(target: Path) -> tuple[int, int]:
    """Runs the tests with the lowest versions. Returns the numbers of passed and failed tests."""
    return checked(target, "lowest versions", "--lowest")


def checked(target: Path, name: str, *options: str | Path) -> tuple[int, int]:
    """Runs ``check.py`` with options. Returns the numbers of passed and failed tests."""
    command = [sys.executable, check.HERE / "check.py", target, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    *lines, result = done.stdout.splitlines() or [""]
    print("\n".join(lines if done.returncode else lines[-1:]), f"\n{name}: {result[12:]}")
    count = check.counted(result)
    failed = max(count.get("failed", 0), 1) if done.returncode else 0
    return count.get("passed", 0), failed


# Python without the GIL


def free_threaded(target: Path, *, is_named: bool) -> tuple[int, int]:
    """Runs the tests without frameworks. Returns the numbers of passed and failed tests."""
    python = free_threaded_interpreter(target) or (compiled(target) if is_named else None)
    if python is None:
        print("free-threaded: left out, because there is no interpreter without the GIL")
        return 0, 0
    return checked(target, f"free-threaded, {python}", "--python", python)


def free_threaded_interpreter(target: Path) -> Path | None:
    """An interpreter without the GIL: compiled here before, of the system, or of pyenv."""
    names = [f"python3.{minor}t" for minor in (15, 14, 13)]
    found = [target / "python/free-threaded/bin" / name for name in names]
    found += [Path(path) for name in names if (path := shutil.which(name))]
    found += sorted((Path.home() / ".pyenv/versions").glob("3.1*t/bin/python3"))
    return next((path for path in found if path.exists()), None)


def compiled(target: Path) -> Path:
    """Compiles CPython without the GIL into the target directory."""
    folder = target / "python/free-threaded-source"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with urllib.request.urlopen(CPYTHON) as response:
        source = response.read()
    if hashlib.sha256(source).hexdigest() != CPYTHON_SHA256:
        sys.exit(f"{CPYTHON} is not the expected file")
    with tarfile.open(fileobj=io.BytesIO(source)) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    home = target / "python/free-threaded"
    jobs = str(os.cpu_count() or 1)
    for command in (
        ["./configure", "--quiet", "--disable-gil", f"--prefix={home}"],
        ["make", "--quiet", "-j", jobs],
        ["make", "--quiet", "install"],
    ):
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    shutil.rmtree(folder)
    return home / "bin/python3.14t"


# The published package


def packed(target: Path) -> tuple[int, int]:
    """Installs the wheel in empty environments and uses it. Then installs the package from its folder."""
    wheel = check.build_wheel(check.environment(target), target)
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.2f} MB, at most {MAX_WHEEL_BYTES / 1e6:.0f} MB")
    results = [size <= MAX_WHEEL_BYTES]
    for python in interpreters():
        results.append(used(python, target, wheel))
    results.append(used(Path(sys.executable), target, check.HERE))
    return results.count(True), results.count(False)


def interpreters() -> list[Path]:
    """Python 3.10 and 3.13 if pyenv has them, otherwise the running interpreter."""
    versions = sorted((Path.home() / ".pyenv/versions").glob("3.1[03].*/bin/python3"))
    return versions or [Path(sys.executable)]


def used(python: Path, target: Path, source: Path) -> bool:
    """Installs the wheel or the folder in an empty environment, and runs a program far from this folder."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "venv"
        subprocess.run([python, "-m", "venv", home], check=True)
        # Cargo and its profile are for the folder: otherwise everything would be compiled once more.
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        variables["CARGO_TARGET_DIR"] = str(target)
        variables["MATURIN_PEP517_ARGS"] = "--profile dist --locked"
        own = check.interpreter(home)
        install = [own, "-m", "pip", "install", "-q", "--disable-pip-version-check", source]
        commands = [install, [own, "-c", USES_THE_PACKAGE]]
        for command in commands:
            done = subprocess.run(
                command, cwd=place, env=variables, capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"{source.name} with {python}:\n{done.stdout}{done.stderr}")
                return False
        print(f"{source.name} is used with Python {done.stdout.strip()}")
        return True


if __name__ == "__main__":
    sys.exit(main())
