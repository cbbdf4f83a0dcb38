"""Threads, forked processes, interpreter exit and memory."""

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from contextlib import ExitStack

import pytest

import recto
from recto import Store
from recto.store import _SHARED


def user(text):
    return {"role": "user", "content": text}


def test_threads_share_a_store(tmp_path):
    with Store.open(f"sqlite:{tmp_path}/threads.db") as store:
        conversation = store.create("support", counter="approx")

        def append():
            for number in range(10):
                conversation.append(user(str(number)))

        threads = [threading.Thread(target=append) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert conversation.version() == 80 and len(conversation.messages()) == 80


def test_a_blocking_call_releases_the_interpreter():
    store = Store.open("memory:")
    conversation = store.create("support", counter="approx")
    started, steps = threading.Event(), []

    def count():
        while not started.wait(0.0005):
            steps.append(1)

    thread = threading.Thread(target=count)
    thread.start()
    while len(steps) < 5:
        conversation.append([user("x" * 1000)] * 100)
    started.set()
    thread.join()
    assert len(steps) >= 5


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a GIL"
)
def test_the_module_runs_without_the_gil():
    program = "import sys, recto; recto.Store.open('memory:'); print(sys._is_gil_enabled())"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, env=variables, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_closing_while_requests_run():
    store = Store.open("memory:")
    conversation = store.create("support", counter="approx")
    errors = []

    def append():
        try:
            while True:
                conversation.append(user("x"))
        except recto.StorageError as error:
            errors.append(error)

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    store.close()
    for thread in threads:
        thread.join(10)
    assert len(errors) == 4


fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_child(work, seconds=0):
    """Runs a function in a forked process, and returns what it returned. The process ends after a time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        try:
            os.write(writer, repr(work()).encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_opens_the_file_again(tmp_path):
    store = Store.open(f"sqlite:{tmp_path}/fork.db")
    conversation = store.create("support", counter="approx")
    conversation.append(user("parent"))

    def work():
        conversation.append(user("child"))
        return [message["content"] for message in conversation.messages()]

    for _ in range(3):
        assert "child" in in_child(work)
    conversation.append(user("parent again"))
    assert [m["content"] for m in conversation.messages()] == [
        "parent",
        *["child"] * 3,
        "parent again",
    ]
    assert store.verify()["sound"]


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_forked_process_commits_stays_after_the_parent_has_closed_the_file(tmp_path):
    store = Store.open(f"sqlite:{tmp_path}/fork.db")
    talk = store.create("talk", counter="approx")
    talk.append(user("parent"))
    has_begun, is_closed = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        talk.append(user("child"))
        os.write(has_begun[1], b"x")
        os.read(is_closed[0], 1)
        talk.append(user("child again"))
        os._exit(0)
    os.read(has_begun[0], 1)
    store.close()
    os.write(is_closed[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    with Store.open(store.address) as store:
        texts = [message["content"] for message in store.conversation("talk").messages()]
        assert texts == ["parent", "child", "child again"]


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_are_forked_while_threads_write(tmp_path):
    store = Store.open(f"sqlite:{tmp_path}/fork.db")
    talk = store.create("talk", counter="approx")
    end = threading.Event()
    counts = [0, 0, 0]

    def write(number):
        while not end.is_set():
            talk.append(user("parent"))
            counts[number] += 1
            # Writers without a pause could keep winning the race for the next version.
            time.sleep(0.001)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(counts))]
    for thread in threads:
        thread.start()
    versions = [in_child(lambda: talk.append(user("child"))["version"]) for _ in range(8)]
    end.set()
    for thread in threads:
        thread.join()
    assert all(version.isdigit() for version in versions), versions
    assert talk.version() == sum(counts) + len(versions) and store.verify()["sound"]


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_are_forked_while_a_thread_opens_stores(tmp_path, capfd):
    talk = Store.open(f"sqlite:{tmp_path}/fork.db").create("talk", counter="approx")
    end = threading.Event()
    errors = []

    def work():
        try:
            while not end.is_set():
                Store.open(f"sqlite:{tmp_path}/fork.db").list()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    versions = [in_child(lambda: talk.append(user("child"))["version"]) for _ in range(20)]
    end.set()
    for thread in threads:
        thread.join()
    assert versions == [str(number) for number in range(1, 21)] and not errors
    assert talk.version() == 20 and capfd.readouterr().err == ""


# An adapter, and work of a thread with it. Each thread has another number.
def checkpoints(saver):
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint

    messages = [HumanMessage("x" * 200, id=str(at)) for at in range(20)]

    def work(number, step):
        config = {"configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}}
        made = empty_checkpoint()
        # One thread adds messages, others remove them.
        made["channel_values"] = {"messages": messages[: step % 20 + 1]}
        made["channel_versions"] = {"messages": f"{step:032}.0"}
        at = saver.put(config, made, {}, made["channel_versions"])
        saver.put_writes(at, [("other", step)], "task")
        found = saver.get_tuple(config)
        return len(found.checkpoint["channel_values"]["messages"]) > 0

    return work


def model_calls(store):
    from langchain_core.messages import HumanMessage

    from recto.langchain import RectoMiddleware

    middleware = RectoMiddleware(store, budget=300, counter="approx")
    messages = [HumanMessage("x" * 200, id=str(at)) for at in range(20)]

    def work(number, step):
        # Another process may hide messages that it does not have.
        middleware.view(f"t{number}", messages[: step % 20 + 1])
        return len(middleware.conversation(f"t{number}").query(scope="all")) > 0

    return work


def adapter(kind, store):
    if kind == "middleware":
        return model_calls(store)
    from langgraph.checkpoint.memory import InMemorySaver

    from recto.langgraph import RectoCheckpointer, RectoSaver

    is_standalone = kind == "checkpointer"
    saver = RectoCheckpointer(store) if is_standalone else RectoSaver(InMemorySaver(), store)
    return checkpoints(saver)


@fork
@pytest.mark.parametrize("kind", ["saver", "checkpointer", "middleware"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_adapter_is_used_in_processes_that_are_forked_while_threads_use_it(kind, tmp_path):
    pytest.importorskip("langchain")
    store = Store.open(f"sqlite:{tmp_path}/fork.db")
    work = adapter(kind, store)
    assert work(0, 0)  # imports modules, which have locks too
    end = threading.Event()
    errors = []

    def run(number):
        try:
            step = 0
            while not end.is_set():
                step += 1
                assert work(number, step)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    done = []
    for step in range(8):
        time.sleep(0.05)
        # A child with a locked lock would wait for ever.
        done.append(in_child(lambda at=step: [work(number, 100 + at) for number in range(3)], 30))
    end.set()
    for thread in threads:
        thread.join()
    assert done == ["[True, True, True]"] * 8 and not errors
    assert store.verify()["sound"]


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_lock_that_another_thread_holds_is_free_in_a_forked_process(tmp_path):
    from recto._growing import GrowingLists

    objects = [GrowingLists(), _SHARED]
    held, end = threading.Event(), threading.Event()

    def hold():
        with ExitStack() as stack:
            for it in objects:
                stack.enter_context(it._lock)
            held.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    free = in_child(lambda: [it._lock.acquire(timeout=10) for it in objects], 30)
    end.set()
    thread.join()
    assert free == "[True, True]"


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_memory_store_is_refused_in_a_forked_process():
    store = Store.open("memory:")
    store.create("support")
    assert "StorageError" in in_child(store.list)
    assert len(store.list()) == 1


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pool_of_forked_processes(tmp_path):
    address = f"sqlite:{tmp_path}/pool.db"
    Store.shared(address).create("support", counter="approx")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.starmap(append_in_pool, [(address, n) for n in range(10)])
    assert Store.shared(address).conversation("support").version() == 10
    Store.shared(address).close()


def append_in_pool(address, number):
    Store.shared(address).conversation("support").append(user(str(number)))


@pytest.mark.parametrize(
    "end",
    [
        "",
        "raise SystemExit(0)",
        "os._exit(0)",
        "threading.Thread(target=forever, daemon=True).start(); time.sleep(0.05)",
        "child = os.fork(); child or sys.exit(0); os.waitpid(child, 0)",
    ],
)
def test_the_interpreter_exits_with_open_stores(end, tmp_path):
    program = textwrap.dedent(f"""
        import os, sys, threading, time
        from recto import Store
        stores = [Store.open("memory:"), Store.open("sqlite:{tmp_path}/exit.db")]
        for store in stores:
            store.create("support").append({{"role": "user", "content": "x"}})
        def forever():
            while True:
                for store in stores:
                    store.conversation("support").append({{"role": "user", "content": "x"}})
        {end}
    """)
    run = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with Store.open(f"sqlite:{tmp_path}/exit.db") as store:
        assert store.verify()["sound"]


def test_memory_is_flat_over_many_calls():
    def resident():
        if os.path.exists("/proc/self/statm"):
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    store = Store.open("memory:")
    conversation = store.create("support", counter="approx", messages=[user("x")] * 10)

    def work(count):
        for _ in range(count):
            conversation.stats()
            try:
                store.request({"list": 7})
            except recto.InvalidRequest:
                pass

    count = int(os.environ.get("RECTO_TEST_CALLS", "20000"))
    work(1_000)
    before = resident()
    work(count // 2)
    assert resident() - before < 2 << 20
