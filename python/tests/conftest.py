"""A PostgreSQL server for the tests that need one."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest

PROGRAMS = ("initdb", "postgres", "psql")
# The server ends with the tests, also if they are killed: then the pipe closes.
RUN = """
"$1" -D "$2/data" -h 127.0.0.1 -p "$3" -k "$2" -c fsync=off >"$2/log" 2>&1 &
read -r end
kill -INT $!
wait
"""


def programs():
    """The folder of the newest installation under ``/usr/lib/postgresql``, or one of the ``PATH``."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda it: int(it.parent.name)
    )
    folders = [*reversed(installed), *map(Path, os.environ["PATH"].split(os.pathsep))]
    found = (it for it in folders if all((it / program).is_file() for program in PROGRAMS))
    return next(found, None)


@pytest.fixture(scope="session")
def postgres_server():
    """A function that runs SQL in a database, and the port."""
    folder = programs()
    if folder is None:
        pytest.fail("PostgreSQL is not installed; `cargo xtask test` installs it")
    home = Path(tempfile.mkdtemp(prefix="recto-postgres-"))
    # PostgreSQL refuses to run as root.
    user = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    if user:
        shutil.chown(home, "postgres", "postgres")
    data = ["--pgdata", home / "data", "--username=postgres", "--auth=trust", "--encoding=UTF8"]
    subprocess.run(
        [folder / "initdb", *data, "--locale=C", "--no-sync"],
        check=True,
        cwd="/",
        stdout=subprocess.PIPE,
        **user,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = ["sh", "-c", RUN, "sh", folder / "postgres", home, str(port)]
    server = subprocess.Popen(script, stdin=subprocess.PIPE, cwd="/", **user)

    def sql(text):
        command = [folder / "psql", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-qAtc"]
        return subprocess.run([*command, text], capture_output=True, text=True, check=False)

    end = time.monotonic() + 60
    while (done := sql("SELECT 1")).returncode:
        assert time.monotonic() < end, done.stderr + (home / "log").read_text()
        time.sleep(0.05)
    yield sql, port
    server.stdin.close()
    server.wait(60)
    shutil.rmtree(home)


_NUMBERS = count()


@pytest.fixture
def postgres(postgres_server):
    """The address of an empty database."""
    sql, port = postgres_server
    name = f"test{next(_NUMBERS)}"
    done = sql(f"CREATE DATABASE {name}")
    assert done.returncode == 0, done.stderr
    return f"postgres://postgres@127.0.0.1:{port}/{name}"
