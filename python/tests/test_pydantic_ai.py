"""RectoContext and RectoConversationStore in agents of Pydantic AI."""

import asyncio
import dataclasses
import random

import pytest

pytest.importorskip("pydantic_ai")

import itertools

from hostile import IDS
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

import recto
from recto import Store
from recto.pydantic_ai import RectoContext, RectoConversationStore, fit_messages


def agent_with(capabilities, calls=12):
    seen = []

    def answer(messages, info):
        seen.append(list(messages))
        if len(seen) % (calls + 1):
            call = ToolCallPart("read", {"path": f"f{len(seen)}"}, tool_call_id=f"c{len(seen)}")
            return ModelResponse(parts=[call])
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(answer), capabilities=capabilities, system_prompt="Be brief.")

    @agent.tool_plain
    def read(path: str) -> str:
        return f"{path}: timeout\n" * 25

    return agent, seen


def torn(messages):
    calls, returns = set(), set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                calls.add(part.tool_call_id)
            if isinstance(part, ToolReturnPart):
                returns.add(part.tool_call_id)
    return calls ^ returns


def test_the_model_reads_a_window_and_the_history_is_whole():
    reports = []
    plain, whole = agent_with([])
    expected = plain.run_sync("go").all_messages()
    agent, seen = agent_with([RectoContext(budget=600, on_report=reports.append)])
    result = agent.run_sync("go")
    assert len(result.all_messages()) == len(expected) == 26
    assert max(map(len, whole)) == 25 and max(map(len, seen)) < 12
    assert all(report.tokens <= 600 for report in reports)
    assert not any(torn(messages) for messages in seen)
    assert all(messages[0].parts[0].content == "Be brief." for messages in seen)
    again = agent.run_sync("and then?", message_history=result.all_messages())
    assert len(again.all_messages()) == 52


def test_cuts_are_rare_and_the_front_stays_in_between():
    reports = []
    agent, seen = agent_with([RectoContext(budget=2000, on_report=reports.append)], calls=40)
    result = agent.run_sync("go")
    agent.run_sync("and then?", message_history=result.all_messages())
    assert len(seen) == 82 and all(report.tokens <= 2000 for report in reports)
    changed = sum(new[: len(old)] != old for old, new in itertools.pairwise(seen))
    assert 2 <= changed <= 14
    assert not any(torn(messages) for messages in seen)
    assert reports[-1].dropped and len(reports[-1].positions) == len(reports[-1].messages)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 10, "target": 11}, "target"),
        ({"budget": 10, "counter": "abacus"}, "counter"),
    ],
)
def test_wrong_options(options, field):
    with pytest.raises(recto.InvalidRequest) as error:
        RectoContext(**options)
    assert error.value.field == field
    with pytest.raises(TypeError, match="store"):
        RectoConversationStore(7)


def test_messages_are_the_callers_own():
    agent, _ = agent_with([], calls=3)
    messages = agent.run_sync("go").all_messages()
    fitted = fit_messages(messages, 100_000)
    assert all(one is other for one, other in zip(fitted.messages, messages, strict=True))
    small = fit_messages(messages, 10)
    assert small.messages[0] is messages[0] and small.dropped


def turn(text):
    return [ModelRequest(parts=[UserPromptPart(text)]), ModelResponse(parts=[TextPart(text)])]


def shape(text):
    """The contents of the parts of a stored message, which do not include its time."""
    return [getattr(part, "content", None) for part in text.parts]


async def scenario(store, seed):
    """Saves, branches, forks, deletes and conflicts at random. Returns everything that was observed."""
    rnd, seen, ids = random.Random(seed), [], ["c0"]
    for step in range(25):
        name, chance = rnd.choice(ids), rnd.random()
        loaded = await store.load(name, limit=rnd.choice([None, None, 3]))
        conversation = loaded or Conversation(conversation_id=name)
        length = len(await store.load_entries(name) or [])
        try:
            if chance < 0.5:
                conversation.messages.extend(turn(f"t{step}"))
                saved = await store.save(conversation, scope=rnd.choice([None, "a"]))
                seen.append(("saved", [shape(entry.message) for entry in saved]))
            elif chance < 0.6:
                whole = await store.load(name) or conversation
                copy = Conversation(
                    conversation_id=name, messages=[*whole.messages[:1], *turn(f"r{step}")]
                )
                copy.revision = whole.revision
                seen.append(("rewritten", len(await store.save(copy))))
            elif chance < 0.75:
                at = rnd.randint(0, length + 1)
                back = await store.branch(name, at=at, expected_revision=conversation.revision)
                seen.append(("branched", [shape(message) for message in back.messages]))
            elif chance < 0.85:
                target = f"c{len(ids)}"
                await store.fork(name, at=rnd.randint(0, length + 1), new_conversation_id=target)
                ids.append(target)
                seen.append(("forked", target))
            elif chance < 0.93:
                stale = await store.load(name)
                await store.save(await store.load(name) or Conversation(conversation_id=name))
                if stale is not None:
                    stale.messages.extend(turn("stale"))
                    await store.save(stale)
            else:
                await store.delete(name)
                seen.append(("deleted", name))
        except (ConversationConflict, UserError) as error:
            seen.append((type(error).__name__,))
        for one in ids:
            entries = await store.load_entries(one)
            record = await store.read_record(one)
            seen.append((one, entries and [shape(entry.message) for entry in entries]))
            if record is not None:
                branches = [await store.read_history(tip) for tip in record.branches]
                left = [[shape(entry.message) for entry in line] for line in branches]
                seen.append((record.scope, record.forked_from, left))
    found = await store.list_conversations(limit=5)
    seen.append([record.conversation_id for record in found])
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_the_store_answers_as_the_frameworks_own_store(seed, tmp_path):
    expected = asyncio.run(scenario(InMemoryConversationStore(), seed))
    with Store.open(f"sqlite:{tmp_path}/s.db") as store:
        ours = RectoConversationStore(store, prefix="p/", counter="approx")
        assert asyncio.run(scenario(ours, seed)) == expected
        assert store.verify()["sound"]


def test_a_run_is_stored_and_every_branch_is_a_version(tmp_path):
    async def run():
        agent, _ = agent_with([], calls=3)
        store = RectoConversationStore(Store.open(f"sqlite:{tmp_path}/s.db"))
        first = await agent.run("go", conversation=Conversation(conversation_id="t"))
        entries = await store.save(first)
        assert [entry.message for entry in entries] == first.all_messages()
        loaded = await store.load("t")
        assert loaded.messages == first.all_messages() and loaded.usage == first.usage
        await store.branch("t", at=2, expected_revision=loaded.revision)
        conversation = store.conversation("t")
        assert len(conversation.messages()) == 2 and len(conversation.messages(at=1)) == 8
        # A new store object finds what the first one has written.
        again = RectoConversationStore(Store.open(f"sqlite:{tmp_path}/s.db"))
        assert (await again.load("t")).messages == first.all_messages()[:2]

    asyncio.run(run())


def test_a_record_that_is_larger_than_a_note(tmp_path):
    async def run():
        store = RectoConversationStore(Store.open("memory:"))
        conversation = Conversation(conversation_id="t", messages=turn("a"))
        await store.save(conversation)
        record = await store.read_record("t")
        large = dataclasses.replace(record, scope="x" * 50_000, revision="r2")
        await store.write_record(large, expected_revision=record.revision)
        assert await store.read_record("t") == large
        assert len(await store.load_entries("t")) == 2
        assert len(store.conversation("t").messages()) == 2

    asyncio.run(run())


def test_any_conversation_id_is_stored_and_the_default_one(tmp_path):
    async def run():
        store = RectoConversationStore(Store.open(f"sqlite:{tmp_path}/s.db"), counter="approx")
        for number, identity in enumerate(IDS):
            conversation = Conversation(conversation_id=identity, messages=turn(str(number)))
            await store.save(conversation)
        generated = Conversation(messages=turn("generated"))
        await store.save(generated)
        fork = await store.fork(generated.conversation_id)  # it generates an id too
        assert fork.messages == generated.messages
        fork.messages.extend(turn("more"))
        await store.save(fork)
        again = RectoConversationStore(store.store)
        for number, identity in enumerate(IDS):
            assert (await again.load(identity)).messages[0].parts[0].content == str(number)
            assert len(again.conversation(identity).messages()) == 2
        assert len((await again.load(fork.conversation_id)).messages) == 4
        assert len(await again.list_conversations(limit=100)) == len(IDS) + 2
        for identity in IDS:
            await again.delete(identity)
        assert len(store.store.list()) == 2

    asyncio.run(run())


def test_two_writers_of_one_revision(tmp_path):
    async def run():
        stores = [
            RectoConversationStore(Store.open(f"sqlite:{tmp_path}/s.db"), counter="approx")
            for _ in range(2)
        ]
        await stores[0].save(Conversation(conversation_id="t", messages=turn("a")))

        async def write(store, text):
            conversation = await store.load("t")
            await asyncio.sleep(0)
            conversation.messages.extend(turn(text))
            try:
                return len(await store.save(conversation))
            except ConversationConflict:
                return 0

        for number in range(5):
            before = len(await stores[0].load_entries("t"))
            stored = await asyncio.gather(*(write(store, f"w{number}") for store in stores))
            assert len(await stores[1].load_entries("t")) == before + sum(stored)
            assert sum(stored) >= 2

    asyncio.run(run())
