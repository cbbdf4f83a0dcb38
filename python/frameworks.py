"""Runs the frameworks' own test suites with the adapters: ``python3 frameworks.py TARGET``.

It needs the environment that ``check.py`` has made, and downloads the source packages of the frameworks.
LangGraph's tests run with RectoSaver around its SQLite saver, and the session tests of the Agents SDK with
RectoSession. The tests are not part of this repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

PACKAGES = [
    "https://files.pythonhosted.org/packages/a5/36/537006bc2a22f3aa232ce0907f52a333f831a6a2f525894ff43747a7abee/openai_agents-0.24.0.tar.gz",
    "https://files.pythonhosted.org/packages/41/77/892e53207bfadd4b114d274737735444d06216ec9a88dfc4def9bd888254/langgraph-1.2.20.tar.gz",
]
NEEDED = [
    "executing",
    "execnet",
    "inline-snapshot",
    "langgraph-checkpoint-postgres==3.2.0",
    "orjson",
    "psycopg",
    "psycopg-binary",
    "psycopg-pool",
    "pycryptodome",
    "pytest-asyncio",
    "pytest-mock",
    "pytest-repeat",
    "pytest-xdist",
    "redis",
    "syrupy",
]
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


def main() -> int:
    target = Path(sys.argv[1]).resolve() / "python"
    python = target / "venv/bin/python"
    folder = target / "frameworks"
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the environment, so that the package's own tests run without their plugins.
    packages = folder / "packages"
    if not packages.exists():
        install = [python, "-m", "pip", "install", "-q", "--no-deps", "--target", packages]
        subprocess.run([*install, *NEEDED], check=True)
    for address in PACKAGES:
        file = folder / address.rsplit("/", 1)[1]
        if not file.exists():
            urllib.request.urlretrieve(address, file)
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")
    variables = {**os.environ, "NO_DOCKER": "true", "LANGSMITH_TRACING": "false"}
    variables["PYTHONPATH"] = str(packages)

    agents = folder / "openai_agents-0.24.0"
    (agents / "tests/test_recto_session.py").write_text(SWAPPED_SESSION)
    langgraph = folder / "langgraph-1.2.20"
    fixtures = langgraph / "tests/conftest_checkpointer.py"
    fixtures.write_text(fixtures.read_text() + SWAPPED_SAVER)
    chosen = sys.argv[2:] or ["agents", "langgraph"]
    failed = 0
    if "agents" in chosen:
        failed += suite(python, agents, variables, ["tests/test_recto_session.py"])
    if "langgraph" in chosen:
        only = "sqlite and not aio and not aes"
        failed += suite(
            python, langgraph, variables, ["tests", "-k", only, "--deselect", FAILS_WITHOUT_US]
        )
    return 1 if failed else 0


def suite(python: Path, folder: Path, variables: dict[str, str], arguments: list[str]) -> int:
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    print(folder.name, re.findall(r"^.*(?:passed|failed|error).*$", done.stdout, re.MULTILINE)[-1:])
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
