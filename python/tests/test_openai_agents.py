"""RectoSession in the OpenAI Agents SDK."""

import asyncio
import json
import threading

import pytest

pytest.importorskip("agents")

import itertools

from agents import (
    Agent,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.memory import Session, SessionSettings
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call
from hostile import IDS

import recto
from recto import Store
from recto.openai_agents import RectoSession, fit_input

set_tracing_disabled(True)

ITEMS = [
    {"role": "user", "content": "hello"},
    {"role": "user", "content": [{"type": "input_text", "text": "你好 \u0000 \" '; DROP TABLE"}]},
    {"type": "function_call", "call_id": "a", "name": "read", "arguments": '{"x": 1}'},
    {"type": "function_call_output", "call_id": "a", "output": "found"},
    {"type": "function_call", "call_id": "b", "name": "read", "arguments": "{broken"},
    {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "x"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
    {"type": "message", "role": "assistant", "id": "m", "status": "completed",
     "content": [{"type": "output_text", "text": "done", "annotations": []}]},
    {"role": "user", "content": ""},
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": "hello"},
    {"type": "item_reference", "id": "x"},
    {"type": "reasoning", "id": "rs_2", "summary": [], "content": None},
    {"type": "function_call_output", "call_id": "c", "content": None, "output": "text"},
    {"type": "function_call_output", "call_id": "d", "output": ""},
    {"role": "assistant", "content": None},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAA"}]},
]  # fmt: skip


@function_tool
def read(path: str) -> str:
    return "\n".join(f"{path} line {number} of the log" for number in range(25))


def test_items_are_returned_as_they_were_added():
    async def run():
        session = RectoSession("s", Store.open("memory:"))
        assert isinstance(session, Session)
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.add_items([])
        assert session.conversation.version() == 0
        await session.add_items(ITEMS)
        assert session.conversation.version() == 1
        assert await session.get_items() == ITEMS
        for limit in range(1, len(ITEMS) + 2):
            assert await session.get_items(limit) == ITEMS[-limit:]
        assert await session.get_items(0) == [] == await session.get_items(-1)
        assert await session.pop_item() == ITEMS[-1]
        assert await session.get_items() == ITEMS[:-1]
        await session.clear_session()
        assert await session.get_items() == []
        await session.undo()
        assert await session.get_items() == ITEMS[:-1]

    asyncio.run(run())


def test_any_session_id_has_a_conversation():
    async def run():
        store = Store.open("memory:")
        for number, identity in enumerate(IDS):
            session = RectoSession(identity, store, counter="approx")
            assert session.session_id == identity
            await session.add_items([{"role": "user", "content": str(number)}])
        for number, identity in enumerate(IDS):
            again = RectoSession(identity, store)
            assert await again.get_items() == [{"role": "user", "content": str(number)}]
            branch = await again.fork(f"{identity} branch")
            assert await branch.get_items() == await again.get_items()
        assert len(store.list()) == 2 * len(IDS)

    asyncio.run(run())


def test_a_text_is_stored_once_and_the_order_of_fields_stays():
    async def run():
        session = RectoSession("s", Store.open("memory:"))
        text = "a text of some length"
        items = [{"content": text, "role": "user"}, {"output": text, "call_id": "a"}]
        items[1]["type"] = "function_call_output"
        await session.add_items(items)
        stored = json.dumps(session.conversation.messages())
        assert stored.count(text) == 2
        assert json.dumps(await session.get_items()) == json.dumps(items)

    asyncio.run(run())


def test_the_limit_of_the_settings():
    async def run():
        settings = SessionSettings(limit=2)
        session = RectoSession("s", Store.open("memory:"), session_settings=settings)
        await session.add_items(ITEMS)
        assert await session.get_items() == ITEMS[-2:]
        assert await session.get_items(3) == ITEMS[-3:]

    asyncio.run(run())


def model_of(calls):
    steps = [[function_call("read", {"path": f"f{n}"}, call_id=f"c{n}")] for n in range(calls)]
    return ScriptedModel([*steps, [assistant_message("done")], [assistant_message("again")]])


def torn(items):
    calls = {item["call_id"] for item in items if item.get("type") == "function_call"}
    outputs = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
    return calls ^ outputs


def test_a_long_tool_loop_stays_within_the_budget():
    async def run(session, config):
        model = model_of(12)
        agent = Agent(name="a", model=model, tools=[read])
        await Runner.run(agent, "first", session=session, run_config=config, max_turns=50)
        await Runner.run(agent, "second", session=session, run_config=config)
        inputs = [call.input for call in model.calls if not isinstance(call.input, str)]
        return inputs, await session.get_items()

    session = RectoSession("s", Store.open("memory:"))
    plain, expected = asyncio.run(run(SQLiteSession("s"), RunConfig()))
    shaped, items = asyncio.run(run(session, RunConfig(call_model_input_filter=session.fit(800))))
    assert max(map(len, plain)) == 27 and max(map(len, shaped)) < 10
    assert not any(torn(sent) for sent in shaped)
    assert [strip(item) for item in items] == [strip(item) for item in expected]


def changed_fronts(inputs, key=lambda item: json.dumps(item, sort_keys=True)):
    """Number of inputs that do not begin with the whole input before them."""
    lists = [[key(item) for item in sent] for sent in inputs]
    return sum(new[: len(old)] != old for old, new in itertools.pairwise(lists))


def test_cuts_are_rare_and_the_front_stays_in_between():
    session = RectoSession("s", Store.open("memory:"))
    model = model_of(40)
    agent = Agent(name="a", model=model, tools=[read])
    config = RunConfig(call_model_input_filter=session.fit(3000))
    run = Runner.run(agent, "first", session=session, run_config=config, max_turns=50)
    asyncio.run(run)
    inputs = [call.input for call in model.calls]
    assert all(recto.count_tokens(sent, format="openai-responses") <= 3000 for sent in inputs)
    assert len(inputs) == 41 and 1 <= changed_fronts(inputs) <= 8
    assert not any(torn(sent) for sent in inputs)


def test_the_items_of_an_input_are_the_callers_own():
    items = [{"role": "user", "content": f"line {number} of the log"} for number in range(40)]
    lost = {"type": "function_call", "call_id": "lost", "name": "read", "arguments": "{}"}

    def shaped(given, budget):
        data = CallModelData(ModelInputData([*given], None), Agent(name="a"), None)
        return fit_input(budget)(data).input

    whole = shaped(items, 100_000)
    assert all(one is other for one, other in zip(whole, items, strict=True))
    cut = shaped(items, 200)
    assert 0 < len(cut) < 40
    assert all(one is other for one, other in zip(cut, items[-len(cut) :], strict=True))
    # Only the placeholder of a lost output is new.
    repaired = shaped([*items, lost], 100_000)
    assert all(one is other for one, other in zip(repaired, [*items, lost]))
    assert len(repaired) == 42 and repaired[-1]["type"] == "function_call_output"


def test_runs_that_share_a_filter():
    fit = fit_input(800)

    def call(items):
        return fit(CallModelData(ModelInputData([*items], None), Agent(name="a"), None)).input

    runs = [[{"role": "user", "content": f"run {number}"}] for number in range(5)]
    sent = [[] for _ in runs]
    for step in range(20):
        for number, items in enumerate(runs):
            sent[number].append(call(items))
            assert call(items) == sent[number][-1]  # a retry
            identity = f"{number} {step}"
            call_item = {"type": "function_call", "call_id": identity, "name": "read"}
            items.append({**call_item, "arguments": "{}"})
            text = "a line of the log\n" * 10
            items.append({"type": "function_call_output", "call_id": identity, "output": text})
    for inputs in sent:
        assert 1 <= changed_fronts(inputs) <= 5
        assert not any(torn(items) for items in inputs)
    # A list that was rewound is fitted as a whole.
    assert call(runs[0][:3]) == runs[0][:3]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": 10, "target_tokens": 11}, "target_tokens"),
        ({"max_tokens": 10, "counter": "abacus"}, "counter"),
    ],
)
def test_wrong_options_of_the_filter(options, field):
    with pytest.raises(recto.InvalidRequest) as error:
        fit_input(**options)
    assert error.value.field == field
    with pytest.raises(TypeError, match="store"):
        RectoSession("s", 7)


def test_wrong_arguments_of_a_session():
    async def run():
        store = Store.open("memory:")
        session = RectoSession("s", store, counter="approx")
        await session.add_items([{"role": "user", "content": "x"}])
        wrong = {
            "limit": lambda: session.get_items(limit="x"),
            "steps": lambda: session.rewind(steps="one"),
            "session_id": lambda: session.fork(7),
        }
        for field, call in wrong.items():
            with pytest.raises(recto.InvalidRequest) as error:
                await call()
            assert error.value.field == field
        for options in ({"session_id": None}, {"session_id": "s", "prefix": 7}):
            with pytest.raises(recto.InvalidRequest) as error:
                RectoSession(store=store, **options)
            assert error.value.field in ("session_id", "prefix")
        assert len(await session.get_items()) == 1 and len(store.list()) == 1

    asyncio.run(run())


@function_tool(needs_approval=True)
def delete(path: str) -> str:
    return f"{path} is deleted"


@pytest.mark.parametrize("mode", ["whole", "streamed"])
@pytest.mark.parametrize("approved", [True, False])
def test_a_run_that_waits_for_an_approval_is_resumed(approved, mode, tmp_path):
    """The run state is stored as JSON, and another process resumes the run with the session."""

    async def runner(*arguments, **options):
        if mode == "whole":
            return await Runner.run(*arguments, **options)
        result = Runner.run_streamed(*arguments, **options)
        async for _ in result.stream_events():
            pass
        return result

    def agent_of(steps):
        model = ScriptedModel(steps)
        return Agent(name="a", model=model, tools=[read, delete]), model

    async def run(session_of, filtered):
        calls = [
            function_call("read", {"path": "f"}, call_id="c1"),
            function_call("delete", {"path": "f"}, call_id="c2"),
        ]
        session = session_of()
        config = RunConfig(call_model_input_filter=fit_input(10_000) if filtered else None)
        agent, _ = agent_of([calls])
        waiting = await runner(agent, "delete f", session=session, run_config=config)
        (item,) = waiting.interruptions
        assert item.name == "delete"
        text = waiting.to_state().to_string()

        session = session_of()
        agent, model = agent_of([[assistant_message("done")], [assistant_message("again")]])
        state = await RunState.from_string(agent, text)
        (item,) = state.get_interruptions()
        state.approve(item) if approved else state.reject(item)
        result = await runner(agent, state, session=session, run_config=config)
        assert result.final_output == "done"
        await runner(agent, "and now?", session=session, run_config=config)
        inputs = [call.input for call in model.calls]
        assert len(inputs) == 2 and not any(torn(sent) for sent in inputs)
        outputs = [item for item in inputs[-1] if item.get("type") == "function_call_output"]
        assert len(outputs) == 2 and ("f is deleted" in outputs[1]["output"]) is approved
        return [strip(item) for item in await session.get_items()]

    plain = asyncio.run(run(lambda: SQLiteSession("s", tmp_path / "plain.db"), False))
    address = f"sqlite:{tmp_path}/recto.db"
    assert asyncio.run(run(lambda: RectoSession("s", Store.open(address)), True)) == plain


def strip(item):
    return {key: value for key, value in item.items() if key != "id"}


def test_a_lost_result_is_repaired_in_the_input():
    async def run():
        session = RectoSession("s", Store.open("memory:"))
        lost = {"type": "function_call", "call_id": "lost", "name": "read", "arguments": "{}"}
        await session.add_items([{"role": "user", "content": "go"}, lost])
        model = ScriptedModel([[assistant_message("hi")]])
        config = RunConfig(call_model_input_filter=fit_input(10_000))
        agent = Agent(name="a", model=model, tools=[read])
        await Runner.run(agent, "next", session=session, run_config=config)
        sent = model.calls[0].input
        assert not torn(sent)
        assert len(await session.get_items()) == 4
        # The SDK removes the call from the input. The filter keeps it, with a placeholder.
        data = CallModelData(ModelInputData([*(await session.get_items())], None), agent, None)
        shaped = fit_input(10_000)(data).input
        assert not torn(shaped) and len(shaped) == 5
        assert shaped[2] == {
            "type": "function_call_output",
            "call_id": "lost",
            "output": "[no result]",
        }

    asyncio.run(run())


def test_rewind_and_fork():
    async def run():
        session = RectoSession("s", Store.open("memory:"))
        config = RunConfig(call_model_input_filter=session.fit(800))
        agent = Agent(name="a", model=model_of(2), tools=[read])
        await Runner.run(agent, "Why does checkout fail?", session=session, run_config=config)
        await Runner.run(agent, "And in June?", session=session, run_config=config)
        before = await session.get_items()
        assert await session.rewind() == 2
        assert (await session.get_items()) == before[:-2]
        branch = await session.fork("what-if", at=1)
        assert len(await branch.get_items()) == 1
        await session.undo()
        assert await session.get_items() == before
        assert await session.rewind(steps=3) == 3
        assert await branch.rewind() == 1 and await branch.rewind() == 0
        with pytest.raises(recto.InvalidRequest):
            await session.rewind(before="breakfast")

    asyncio.run(run())


def test_a_cancelled_change_is_completed():
    async def run():
        session = RectoSession("s", Store.open("memory:"))
        for number in range(30):
            task = asyncio.create_task(
                session.add_items([{"role": "user", "content": str(number)}])
            )
            await asyncio.sleep(0 if number % 2 else 0.0005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                if not task.done():
                    await task
                raise asyncio.CancelledError
        items = await session.get_items()
        assert len(items) == session.conversation.version()
        assert len(json.dumps(items)) > 0

    asyncio.run(run())


def test_one_session_in_several_event_loops(tmp_path):
    session = RectoSession("s", f"sqlite:{tmp_path}/s.db")

    def work(number):
        async def run():
            for step in range(5):
                await session.add_items([{"role": "user", "content": f"{number} {step}"}])

        asyncio.run(run())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asyncio.run(session.get_items())) == 25
    session.store.close()


@pytest.mark.parametrize("text", ["NaN", "1e999", '"\\ud800"', "[" * 5_000, "9" * 5_000, "{"])
def test_arguments_that_are_not_json_are_stored_as_text(text):
    session = RectoSession("s", Store.open("memory:"), counter="approx")
    call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": text}
    asyncio.run(session.add_items([call]))
    assert asyncio.run(session.get_items()) == [call]
    (message,) = session.conversation.messages()
    assert message["content"][0]["input"] == text


def test_wrong_items_are_refused():
    async def run():
        session = RectoSession("s", Store.open("memory:"))
        for item in ["text", {"role": "user", "content": object()}, {"role": object()}]:
            with pytest.raises(recto.RectoError):
                await session.add_items([item])
        assert session.conversation.version() == 0

    asyncio.run(run())
