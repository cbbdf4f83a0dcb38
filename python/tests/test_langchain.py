"""RectoMiddleware in agents of LangChain."""

import asyncio

import pytest

pytest.importorskip("langchain")

from hostile import IDS
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scripted import ScriptedModel, read, violations

import recto
from recto import Store
from recto._langchain import are_messages, from_recto, to_recto
from recto.langchain import RectoMiddleware

CONFIG = {"configurable": {"thread_id": "t"}, "recursion_limit": 200}


def agent_with(middleware, calls=8, **options):
    model = ScriptedModel(calls=calls, requests=[], refused=[], **options)
    middlewares = [middleware] if middleware else []
    agent = create_agent(
        model,
        [read],
        middleware=middlewares,
        checkpointer=InMemorySaver(),
        system_prompt="Be brief.",
    )
    return agent, model


def crash(agent):
    """Stores a state without the tool result, as after a process that ended during the call."""
    lost = {"id": "lost", "name": "read", "args": {"path": "x"}}
    messages = [HumanMessage("second task"), AIMessage("", tool_calls=[lost])]
    agent.update_state(CONFIG, {"messages": messages}, as_node="model")


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream"])
def test_requests_fit_and_are_valid_and_the_state_keeps_all(mode):
    reports = []
    store = Store.open("memory:")
    middleware = RectoMiddleware(store, budget=1000, on_report=reports.append)
    agent, model = agent_with(middleware)

    def run(text):
        state = {"messages": [("user", text)]}
        if mode == "invoke":
            agent.invoke(state, CONFIG)
        elif mode == "ainvoke":
            asyncio.run(agent.ainvoke(state, CONFIG))
        else:
            list(agent.stream(state, CONFIG))

    run("first task")
    crash(agent)
    run("never mind, third task")
    state = agent.get_state(CONFIG).values["messages"]
    assert len(state) == 18 + 2 + 18
    assert not model.refused
    assert max(len(request) for request in model.requests) < 20
    assert all(report.tokens <= 1000 for report in reports)
    assert any(report.repairs for report in reports)
    # Messages of a request that are in the state equal those of the state.
    by_id = {message.id: message for message in state}
    for request in model.requests:
        for message in request:
            if message.id in by_id:
                assert message == by_id[message.id]
    # Most calls keep the prefix of the previous call: cuts are rare.
    kept = sum(report.hidden == 0 for report in reports)
    assert kept > len(reports) / 2
    conversation = middleware.conversation("t")
    assert len(conversation.query(scope="all")) == len(state) - 1  # without the last answer
    cuts = [version for version in conversation.versions() if version["operation"] == "FIT"]
    assert cuts and "over the budget of 1000" in cuts[0]["description"]
    assert cuts[0]["note"] == {"recto": "langchain", "event": "cut"}
    assert store.verify()["sound"]


def test_without_the_middleware_requests_are_refused():
    agent, model = agent_with(None, strict=False)
    agent.invoke({"messages": [("user", "first task")]}, CONFIG)
    crash(agent)
    agent.invoke({"messages": [("user", "third task")]}, CONFIG)
    assert len(model.refused) == 9


def test_a_cut_that_was_undone_is_not_repeated():
    reports = []
    middleware = RectoMiddleware("memory:", budget=1000, on_report=reports.append)
    agent, model = agent_with(middleware, calls=4)
    while not any(report.hidden for report in reports):
        agent.invoke({"messages": [("user", "task")]}, CONFIG)
    conversation = middleware.conversation("t")
    cut = next(item for item in conversation.versions() if item["operation"] == "FIT")
    conversation.rollback(version=cut["version"] - 1)
    agent.invoke({"messages": [("user", "task")]}, CONFIG)
    assert reports[-1].paused and reports[-1].tokens > 1000
    middleware.resume("t")
    agent.invoke({"messages": [("user", "task")]}, CONFIG)
    assert not reports[-1].paused and reports[-1].tokens <= 1000
    assert not model.refused


def test_messages_that_leave_the_state_leave_the_view():
    middleware = RectoMiddleware(Store.open("memory:"), budget=100_000)
    agent, model = agent_with(middleware, calls=1)
    agent.invoke({"messages": [("user", "first")]}, CONFIG)
    first = agent.get_state(CONFIG).values["messages"]
    edits = [RemoveMessage(id=first[1].id), RemoveMessage(id=first[2].id)]
    edits.append(HumanMessage("first, edited", id=first[0].id))
    agent.update_state(CONFIG, {"messages": edits}, as_node="model")
    agent.invoke({"messages": [("user", "second")]}, CONFIG)
    texts = [message.text for message in model.requests[-2]]
    assert texts[:2] == ["Be brief.", "first, edited"] and "I read 1." not in texts
    assert not model.refused


def test_messages_that_return_to_the_state_return_to_the_view():
    middleware = RectoMiddleware(Store.open("memory:"), budget=100_000)
    messages = [HumanMessage(str(at), id=str(at)) for at in range(6)]

    def shown(given):
        view, _ = middleware.view("t", given)
        return [message.text for message in view]

    assert shown(messages) == list("012345")
    older = [*messages[:2], HumanMessage("x", id="x")]  # a run from an older checkpoint
    assert shown(older) == list("01x")
    edited = [*messages[:3], HumanMessage("edited", id="3"), *messages[4:]]
    assert shown(edited) == ["0", "1", "2", "edited", "4", "5"]
    assert shown(older) == list("01x")
    assert middleware.store.verify()["sound"]


def test_messages_return_to_the_view_in_a_new_process(tmp_path):
    messages = [HumanMessage(str(at), id=str(at)) for at in range(6)]

    def shown(given, hide=()):
        with Store.open(f"sqlite:{tmp_path}/recto.db") as store:
            middleware = RectoMiddleware(store, budget=100_000)
            if hide:
                middleware.conversation("t").hide(hide)
            view, _ = middleware.view("t", given)
            assert store.verify()["sound"]
            return [message.text for message in view]

    assert shown(messages) == list("012345")
    older = [*messages[:2], HumanMessage("x", id="x")]
    assert shown(older) == list("01x")
    assert shown(messages) == list("012345")
    # What was hidden by hand stays hidden.
    assert shown(messages, hide=[4]) == list("01235")
    assert shown(older) == list("01x")
    assert shown(messages) == list("01235")


def test_a_new_process_continues_the_conversation(tmp_path):
    address = f"sqlite:{tmp_path}/recto.db"
    saver = InMemorySaver()
    for _ in range(2):
        with Store.open(address) as store:
            middleware = RectoMiddleware(store, budget=600)
            model = ScriptedModel(calls=4, requests=[], refused=[])
            agent = create_agent(model, [read], middleware=[middleware], checkpointer=saver)
            agent.invoke({"messages": [("user", "task")]}, CONFIG)
            assert not model.refused
            conversation = middleware.conversation("t")
            logged = [entry["message"]["id"] for entry in conversation.query(scope="all")]
            assert len(logged) == len(set(logged))


def test_two_processes_that_serve_a_thread_in_turns(tmp_path):
    """Each worker has its own store and middleware. The checkpointer has the state."""
    saver = InMemorySaver()
    stores = [Store.open(f"sqlite:{tmp_path}/recto.db") for _ in range(2)]
    reports = []
    workers = [RectoMiddleware(store, budget=1500, on_report=reports.append) for store in stores]
    model = ScriptedModel(calls=2, requests=[], refused=[])  # its calls have different ids
    for turn in range(9):
        middleware = workers[turn % 2]
        agent = create_agent(model, [read], middleware=[middleware], checkpointer=saver)
        agent.invoke({"messages": [("user", f"task {turn}")]}, CONFIG)
        state = agent.get_state(CONFIG).values["messages"]
        logged = [
            entry["message"]["id"] for entry in middleware.conversation("t").query(scope="all")
        ]
        # The last answer is recorded with the next request.
        assert logged == [message.id for message in state[:-1]]
        for request in model.requests[-3:]:
            ids = [message.id for message in request]
            assert len(ids) == len(set(ids))
        if not any(report.hidden for report in reports):
            assert model.requests[-1] == state[:-1]
        assert not model.refused
    assert any(report.hidden for report in reports)
    assert stores[0].verify()["sound"]


def test_a_cut_that_was_undone_is_not_repeated_by_another_process(tmp_path):
    address = f"sqlite:{tmp_path}/recto.db"
    messages = [HumanMessage("a line of the log " * 10, id=str(at)) for at in range(40)]

    def report_of(middleware, count):
        return middleware.view("t", messages[:count])[1]

    with Store.open(address) as store:
        middleware = RectoMiddleware(store, budget=600, counter="approx")
        for count in range(1, 20):
            report = report_of(middleware, count)
        cut = next(it for it in middleware.conversation("t").versions() if it["operation"] == "FIT")
        middleware.conversation("t").rollback(version=cut["version"] - 1)
        assert not report.paused
    with Store.open(address) as store:
        middleware = RectoMiddleware(store, budget=600, counter="approx")
        assert report_of(middleware, 20).paused  # the first request after the rollback
        assert report_of(middleware, 21).paused
    with Store.open(address) as store:
        # Other versions are newer than the one that a user made.
        middleware = RectoMiddleware(store, budget=600, counter="approx")
        report = report_of(middleware, 23)
        assert report.paused and report.tokens > 600 and report.hidden == 0
        middleware.resume("t")
        assert report_of(middleware, 23).hidden > 0
    with Store.open(address) as store:
        # The view is cut again, because no cut was undone.
        middleware = RectoMiddleware(store, budget=600, counter="approx")
        reports = [report_of(middleware, count) for count in range(24, 40)]
        assert not any(report.paused for report in reports)
        assert any(report.hidden for report in reports)


def test_messages_that_return_do_not_pause_another_process(tmp_path):
    messages = [HumanMessage("a line of the log " * 10, id=str(at)) for at in range(9)]

    def view(budget, given):
        with Store.open(f"sqlite:{tmp_path}/recto.db") as store:
            middleware = RectoMiddleware(store, budget=budget, counter="approx")
            return middleware.view("t", given)[1]

    assert view(100_000, messages).hidden == 0
    view(100_000, messages[:2])
    assert view(100_000, messages).messages == 9  # they were restored
    assert view(100, messages).hidden > 0


@pytest.mark.parametrize("kind", ["artifact", "text", "metadata"])
def test_a_message_that_is_not_json_is_recorded_as_the_model_reads_it(kind, tmp_path):
    @tool(response_format="content_and_artifact")
    def query(path: str):
        """Runs a query."""
        if kind == "text":
            return "half a character: \ud83d", None
        return f"rows of {path}", {1, 2}

    class Model(ScriptedModel):
        def _generate(self, messages, **options):
            result = super()._generate(messages, **options)
            message = result.generations[0].message
            for call in message.tool_calls:
                call["name"] = "query"
            if kind == "metadata":
                message.response_metadata["raw"] = {1, 2}
            return result

    saver = InMemorySaver()
    model = Model(calls=2, requests=[], refused=[])
    for turn in range(2):  # the second turn is that of another process
        with Store.open(f"sqlite:{tmp_path}/recto.db") as store:
            middleware = RectoMiddleware(store, budget=100_000)
            agent = create_agent(model, [query], middleware=[middleware], checkpointer=saver)
            messages = agent.invoke({"messages": [("user", "go")]}, CONFIG)["messages"]
            assert len(messages) == 6 * (turn + 1)
            # The request has the objects of the state.
            assert model.requests[-1] == messages[:-1] and not model.refused
            results = [one for one in model.requests[-1] if isinstance(one, ToolMessage)]
            assert results[0].artifact == (None if kind == "text" else {1, 2})
            texts = [str(one["content"]) for one in middleware.conversation("t").messages()]
            wanted = "half a character: ?" if kind == "text" else "rows of f"
            assert sum(wanted in text for text in texts) == 2 * (turn + 1)
            assert len(texts) == len(messages) - 1
            # No message is stored twice. InMemorySaver replaces the half character, which is a change.
            logged = middleware.conversation("t").query(scope="all")
            assert len(logged) == len(messages) - 1 + (2 * turn if kind == "text" else 0)
            assert store.verify()["sound"]


def test_any_thread_id_has_a_conversation():
    store = Store.open("memory:")
    middleware = RectoMiddleware(store, budget=100_000, counter="approx")
    model = ScriptedModel(calls=1, requests=[], refused=[])
    agent = create_agent(model, [read], middleware=[middleware], checkpointer=InMemorySaver())
    for thread in [*IDS, 7]:
        agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": thread}})
        assert len(middleware.conversation(thread).messages()) == 3
    assert len(store.list()) == len(IDS) + 1 and not model.refused


def test_a_message_larger_than_the_budget_is_sent():
    reports = []
    middleware = RectoMiddleware(Store.open("memory:"), budget=50, on_report=reports.append)
    agent, model = agent_with(middleware, calls=2)
    agent.invoke({"messages": [("user", "task")]}, CONFIG)
    assert not model.refused
    assert reports[-1].tokens > 50


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"target": 11}, "target"),
        ({"target": 0}, "target"),
        ({"target": "many"}, "target"),
        ({"budget": 0}, "budget"),
        ({"budget": "many"}, "budget"),
        ({"provider": "unknown"}, "provider"),
        ({"start_on": "unknown"}, "start_on"),
        ({"counter": "abacus"}, "counter"),
        ({"prefix": 7}, "prefix"),
    ],
)
def test_wrong_options(options, field):
    with pytest.raises(recto.InvalidRequest) as error:
        RectoMiddleware("memory:", **{"budget": 10, **options})
    assert error.value.field == field
    with pytest.raises(TypeError, match="store"):
        RectoMiddleware(7, budget=10)


def test_a_call_that_is_retried_has_the_same_view():
    from langchain.agents.middleware import ModelRetryMiddleware

    middleware = RectoMiddleware(Store.open("memory:"), budget=600)
    sent = []

    class Failing(ScriptedModel):
        def _generate(self, messages, **options):
            sent.append([message.id for message in messages])
            if len(sent) % 2:
                raise ConnectionError("try again")
            return super()._generate(messages, **options)

    model = Failing(calls=8, requests=[], refused=[])
    for outermost in (True, False):
        retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, on_failure="error")
        order = [retry, middleware] if outermost else [middleware, retry]
        agent = create_agent(model, [read], middleware=order, checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": str(outermost)}, "recursion_limit": 200}
        agent.invoke({"messages": [("user", "task")]}, config)
        versions = middleware.conversation(str(outermost)).versions(limit=1000)
        assert any(version["operation"] == "FIT" for version in versions)
    assert len(sent) == 36 and sent[::2] == sent[1::2] and not model.refused


def test_messages_are_restored_exactly():
    from langchain_core.messages import AIMessageChunk, ChatMessage, FunctionMessage

    call = {"id": "a", "name": "read", "args": {"x": 1}, "type": "tool_call"}
    broken = {"id": "b", "name": "read", "args": "{", "error": None, "type": "invalid_tool_call"}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [
        HumanMessage("hello", id="1", name="ann", additional_kwargs={"x": [1, None]}),
        HumanMessage(""),
        HumanMessage([{"type": "text", "text": "look"}, image, "and"]),
        SystemMessage("Be brief."),
        AIMessage(""),
        AIMessage("", tool_calls=[call], invalid_tool_calls=[broken]),
        AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}, "text"]),
        AIMessage("x", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        AIMessageChunk("chunk", id="7"),
        ToolMessage("done", tool_call_id="a", artifact={"rows": [1]}, status="error"),
        ToolMessage([{"type": "text", "text": "x"}], tool_call_id="a"),
        ToolMessage("", tool_call_id="a"),
        ChatMessage("hi", role="narrator"),
        FunctionMessage("x", name="f"),
    ]
    store = Store.open("memory:")
    conversation = store.create("messages", counter="approx")
    conversation.append([to_recto(message) for message in messages])
    restored = [from_recto(message) for message in conversation.messages()]
    assert restored == messages
    assert [type(one) for one in restored] == [type(one) for one in messages]

    class Special(HumanMessage):
        pass

    assert are_messages(messages)
    assert not are_messages([Special("x")]) and not are_messages([{"role": "user"}])
    assert violations([]) == []
