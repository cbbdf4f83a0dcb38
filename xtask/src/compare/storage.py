#!/usr/bin/env python3
"""Stores an agent run with other libraries, one step per message.

    python storage.py PEER RUN.jsonl SECONDS

PEER is a key of PEERS. A run that takes more than SECONDS is stopped. Prints {"messages", "version", "done",
"seconds", "append", "newest", "middle", "bytes"}: the number of messages of the run, the name and version of
the library, the number of stored messages, the total seconds, the median seconds of one append, of opening
and loading the newest state, and of loading the state in the middle (null if there is none), and the bytes
on disk. The example `store_run` of the crate recto does the same with Recto.

The messages are in Recto's form: parts of type text, tool_use and tool_result.
"""
import asyncio
import contextlib
import glob
import json
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from typing import Annotated, TypedDict

LOADS = 9


class OutOfTime(Exception):
    pass


def parts(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text_of(message):
    return "".join(part["text"] for part in parts(message) if part["type"] == "text")


# ---------------------------------------------------------------- LangGraph


def for_langgraph(number, message):
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    name, text = f"m{number:06d}", text_of(message)
    if message["role"] == "tool":
        [result] = parts(message)
        return ToolMessage(result["content"], tool_call_id=result["tool_use_id"], id=name)
    if message["role"] == "assistant":
        calls = [part for part in parts(message) if part["type"] == "tool_use"]
        calls = [{"id": call["id"], "name": call["name"], "args": call["input"]} for call in calls]
        return AIMessage(text, tool_calls=calls, id=name)
    return {"user": HumanMessage, "system": SystemMessage}[message["role"]](text, id=name)


def graph_over(saver, is_delta, step, is_done):
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.message import add_messages

    channel = add_messages
    if is_delta:
        from langgraph.channels.delta import DeltaChannel
        from langgraph.graph.message import _messages_delta_reducer

        channel = DeltaChannel(_messages_delta_reducer, snapshot_frequency=100)  # the whole list in every 100th step

    class State(TypedDict):
        messages: Annotated[list, channel]

    graph = StateGraph(State)
    graph.add_node("append", step)
    graph.add_edge(START, "append")
    graph.add_conditional_edges("append", lambda _: END if is_done() else "append", ["append", END])
    return graph.compile(checkpointer=saver)


def langgraph(run, limit, is_delta, open_saver, checkpoints):
    """One superstep per message; the next one starts when the checkpoint is committed."""
    messages = [for_langgraph(number, message) for number, message in enumerate(run)]
    done, marks = 0, []

    def step(_state):
        nonlocal done
        marks.append(time.perf_counter())
        if marks[-1] - marks[0] > limit:
            raise OutOfTime
        done += 1
        return {"messages": [messages[done - 1]]}

    thread = {"configurable": {"thread_id": "run"}}
    with open_saver() as saver:
        graph = graph_over(saver, is_delta, step, lambda: done == len(messages))
        start = time.perf_counter()
        with contextlib.suppress(OutOfTime):
            config = thread | {"recursion_limit": len(messages) + 10}
            graph.invoke({"messages": []}, config, durability="sync")
        marks.append(time.perf_counter())

    def load(checkpoint):
        config = {"configurable": thread["configurable"] | checkpoint}
        times = []
        for _ in range(LOADS):
            begin = time.perf_counter()
            with open_saver() as saver:
                taken = time.perf_counter() - begin
                graph = graph_over(saver, is_delta, step, lambda: True)  # not measured
                begin = time.perf_counter()
                graph.get_state(config).values["messages"]
                times.append(taken + time.perf_counter() - begin)
            if sum(times) > limit / 10:
                break
        return statistics.median(times)

    known = checkpoints()
    return {
        "done": done,
        "seconds": marks[-1] - start,
        "append": statistics.median(after - before for before, after in zip(marks, marks[1:])),
        "newest": load({}),
        "middle": load({"checkpoint_id": known[len(known) // 2]}),
    }


def langgraph_sqlite(run, limit, folder, is_delta):
    from langgraph.checkpoint.sqlite import SqliteSaver

    path = os.path.join(folder, "run.db")

    def checkpoints():
        with contextlib.closing(sqlite3.connect(path)) as db:
            select = "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id"
            return [row[0] for row in db.execute(select)]

    result = langgraph(run, limit, is_delta, lambda: SqliteSaver.from_conn_string(path), checkpoints)
    return result | {"bytes": file_bytes(path)}


def langgraph_postgres(run, limit, folder, is_delta):
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver

    with postgres(folder) as address, psycopg.connect(address, autocommit=True) as db:
        with PostgresSaver.from_conn_string(address) as saver:
            saver.setup()
        size = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
                  JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public' AND relkind = 'r'"""
        before = db.execute(size).fetchone()[0]

        def checkpoints():
            select = "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id"
            return [row[0] for row in db.execute(select)]

        open_saver = lambda: PostgresSaver.from_conn_string(address)
        result = langgraph(run, limit, is_delta, open_saver, checkpoints)
        return result | {"bytes": db.execute(size).fetchone()[0] - before}


@contextlib.contextmanager
def postgres(folder):
    """A PostgreSQL server on a socket in the folder, until the end of the block. It does not run as root."""
    data, owner = os.path.join(folder, "data"), {}
    if os.geteuid() == 0:
        import pwd

        user = pwd.getpwnam("postgres")
        owner = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(folder, user.pw_uid, user.pw_gid)
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"]] + glob.glob("/usr/lib/postgresql/*/bin"))  # Debian's
    usual = {"cwd": folder, "env": os.environ | {"LC_ALL": "C"}} | owner
    init = ["initdb", "-D", data, "-U", "run", "-A", "trust", "-E", "UTF8"]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL, **usual)
    start = ["postgres", "-D", data, "-k", folder, "-c", "listen_addresses="]
    with open(os.path.join(folder, "log"), "w") as log:
        server = subprocess.Popen(start, stdout=log, stderr=log, **usual)
    try:
        address = f"host={folder} user=run dbname=postgres"
        for _ in range(200):
            if subprocess.run(["pg_isready", "-q", "-h", folder]).returncode == 0:
                break
            time.sleep(0.05)
        yield address
    finally:
        server.send_signal(signal.SIGINT)  # ends it without waiting for its clients
        server.wait(60)


# ---------------------------------------------------------------- OpenAI Agents SDK


def for_agents(message):
    if message["role"] == "tool":
        [result] = parts(message)
        return [{"type": "function_call_output", "call_id": result["tool_use_id"], "output": result["content"]}]
    items = [{"role": message["role"], "content": text_of(message)}]
    for part in parts(message):
        if part["type"] == "tool_use":
            arguments = json.dumps(part["input"], ensure_ascii=False)
            items.append({"type": "function_call", "call_id": part["id"], "name": part["name"], "arguments": arguments})
    return items


def agents_session(run, limit, folder):
    from agents import SQLiteSession

    path = os.path.join(folder, "run.db")

    async def write():
        session, times = SQLiteSession("run", path), []
        for items in map(for_agents, run):
            begin = time.perf_counter()
            await session.add_items(items)
            times.append(time.perf_counter() - begin)
            if sum(times) > limit:
                break
        session.close()
        return times

    async def load():
        begin = time.perf_counter()
        session = SQLiteSession("run", path)
        await session.get_items()
        taken = time.perf_counter() - begin
        session.close()
        return taken

    times = asyncio.run(write())
    return {
        "done": len(times),
        "seconds": sum(times),
        "append": statistics.median(times),
        "newest": statistics.median(asyncio.run(load()) for _ in range(LOADS)),
        "middle": None,  # it keeps no versions
        "bytes": file_bytes(path),
    }


def file_bytes(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    files = [path + ending for ending in ("", "-wal", "-shm", "-journal")]
    return sum(os.path.getsize(file) for file in files if os.path.exists(file))


PEERS = {
    "langgraph-sqlite": lambda *given: langgraph_sqlite(*given, is_delta=False),
    "langgraph-sqlite-delta": lambda *given: langgraph_sqlite(*given, is_delta=True),
    "langgraph-postgres": lambda *given: langgraph_postgres(*given, is_delta=False),
    "langgraph-postgres-delta": lambda *given: langgraph_postgres(*given, is_delta=True),
    "agents-session": agents_session,
}


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in PEERS:
        sys.exit(f"usage: storage.py {'|'.join(PEERS)} RUN.jsonl SECONDS")
    peer, path, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
    with open(path, encoding="utf-8") as lines:
        run = [json.loads(line) for line in lines]
    # Sockets need a short path, and a server of another user needs a folder that it may enter.
    beside = None if "postgres" in peer else os.path.dirname(os.path.abspath(path))
    folder = tempfile.mkdtemp(prefix="run-", dir=beside)
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "false")
    try:
        result = PEERS[peer](run, limit, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    package = "openai-agents" if peer == "agents-session" else "langgraph"
    version = f"{package} {metadata.version(package)}"
    print(json.dumps({"messages": len(run), "version": version} | result))


if __name__ == "__main__":
    main()
