"""The store and its conversations."""

import asyncio
import json
import pickle

import pytest

import recto
from recto import Store


@pytest.fixture
def store():
    with Store.open("memory:") as store:
        yield store


def user(text):
    return {"role": "user", "content": text}


def test_a_request_has_the_response_of_recto_exec(store):
    created = store.request({"create": "a", "settings": {"counter": "approx"}})
    assert created["conversation"] == "a" and created["version"] == 0
    applied = store.request(
        {"conversation": "a", "op": {"operation": "APPEND", "messages": [user("hi")]}}
    )
    assert applied["version"] == 1 and applied["added"] == [0]
    text = store.request_json('{"conversation": "a", "ask": {"last": 1}}')
    assert json.loads(text)["messages"][0]["message"] == user("hi")


def test_methods_of_a_conversation(store):
    conversation = store.create(
        "support", counter="approx", messages=[{"role": "system", "content": "Be brief."}]
    )
    assert conversation.append(user("one"))["version"] == 1
    assert conversation.append([user("two"), user("three")], description="two more")["added"] == [
        2,
        3,
    ]
    assert [m["content"] for m in conversation.messages()] == ["Be brief.", "one", "two", "three"]
    assert conversation.hide([1])["hidden"] == [1]
    assert [m["content"] for m in conversation.messages()] == ["Be brief.", "two", "three"]
    assert len(conversation.messages(at=2)) == 4
    assert conversation.diff(2, 3)["hidden"]["indices"] == [1]
    assert [step["effect"] for step in conversation.blame(1)] == ["added", "hidden"]
    assert conversation.undo()["shown"] == [1]
    assert conversation.redo()["hidden"] == [1]
    assert conversation.restore([1])["shown"] == [1]
    assert conversation.mark([1])["changed"]
    with pytest.raises(recto.PinnedEntry):
        conversation.hide([1])
    assert conversation.unmark([1])["changed"]
    assert conversation.replace(0, {"role": "system", "content": "Be kind."})["changed"]
    assert conversation.insert(1, user("zero"))["changed"]
    assert conversation.rollback(version=2)["changed"]
    assert conversation.query(role="user", last=1)[0]["message"] == user("three")
    assert conversation.count(role="user") == 3
    assert conversation.versions(limit=1)[0]["version"] == conversation.version()
    assert conversation.stats()["totalMessages"] == 6
    assert conversation.info()["counter"] == "approx"
    fork = conversation.fork("fork", at=1)
    assert len(fork.messages()) == 2
    assert [info["name"] for info in store.list()] == ["fork", "support"]
    assert [info["name"] for info in store.conversations()] == ["fork", "support"]
    assert conversation.render("anthropic", model="claude-sonnet-4-5")["request"]["messages"]
    assert conversation.lint("openai-chat") == []
    assert conversation.tokens()["messages"] == 4
    assert conversation.token_check()["limit"] is None
    assert conversation.state()["totalMessageCount"] == 4
    assert conversation.snapshot(0)["batchIndex"] == 0
    assert conversation.mark_map()["currentBatch"] == 0
    assert conversation.marks() == []
    assert conversation.set_tools([{"name": "read", "description": "Reads."}])["toolsChanged"]
    assert conversation.tools() == [{"name": "read", "description": "Reads."}]
    assert conversation.change_settings({"tokenLimit": 9})["tokenLimit"] == 9
    assert conversation.settings()["tokenLimit"] == 9
    assert json.loads(conversation.export("openai-chat")["data"])
    assert conversation.verify()["sound"] and store.verify()["sound"]
    assert conversation.fit(22)["stats"]["tokens"] <= 22
    assert conversation.preview({"operation": "CLEAR"})["dryRun"]
    assert store.search("three")
    conversation.erase([2])
    conversation.prune(keep_versions=1)
    renamed = conversation.rename("renamed")
    assert renamed.version() == renamed.versions()[0]["version"]
    renamed.remove()
    with pytest.raises(recto.ConversationNotFound):
        renamed.messages()


def test_errors_have_code_field_and_details(store):
    conversation = store.create("support", counter="approx")
    conversation.append(user("one"))
    with pytest.raises(recto.VersionConflict) as conflict:
        conversation.append(user("two"), expected_version=0)
    assert conflict.value.code == "version_conflict"
    assert conflict.value.field == "expectedVersion"
    assert conflict.value.current_version == 1
    with pytest.raises(recto.InvalidRequest) as invalid:
        conversation.apply({"operation": "TRUNCATE", "keeplast": 2})
    assert invalid.value.field == "keeplast" and "keepLast" in invalid.value.message
    with pytest.raises(recto.BudgetTooSmall) as small:
        conversation.fit(1)
    assert small.value.needed == 4
    with pytest.raises(recto.NothingToRevert):
        conversation.redo()
    with pytest.raises(recto.VersionNotFound):
        conversation.messages(at=99)
    with pytest.raises(recto.BatchNotFound):
        conversation.snapshot(9)
    with pytest.raises(recto.ConversationExists):
        store.create("support")
    with pytest.raises(recto.RectoError, match="invalid_operation"):
        Store.open("nowhere")
    copy = pickle.loads(pickle.dumps(conflict.value))
    assert (copy.code, copy.details) == (conflict.value.code, conflict.value.details)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"create": object()}, "create"),
        ({"create": "a", "messages": [{"role": "user", "content": b"x"}]}, "messages[0].content"),
        ({"create": "a", "messages": [{"x": float("nan")}]}, "messages[0].x"),
        ({"create": "a", "messages": [{"content": "\ud800"}]}, "messages[0].content"),
        ({"create": {("a", "b"): 1}}, "create"),
        ({"create": 7}, "create"),
        ({"list": {"limit": -1}}, "list.limit"),
        ({"list": {"limit": True}}, "list.limit"),
    ],
)
def test_a_wrong_value_is_an_error_with_its_field(store, value, field):
    with pytest.raises(recto.InvalidRequest) as invalid:
        store.request(value)
    assert invalid.value.field == field
    assert store.list() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_message_bytes", -1),
        ("max_message_bytes", 0),
        ("max_message_bytes", 2**64),
        ("tenant", "\ud800"),
        ("address", "sqlite:\ud800"),
    ],
)
def test_a_wrong_option_of_open_is_an_error_with_its_name(name, value):
    with pytest.raises(recto.InvalidRequest) as invalid:
        Store.open(**{"address": "memory:", name: value})
    assert invalid.value.field == name


def test_hostile_requests_are_errors(store):
    loop = []
    loop.append(loop)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    deep_object = {}
    for _ in range(5_000):
        deep_object = {"x": deep_object}
    for value in [
        loop,
        deep,
        deep_object,
        None,
        7,
        "x",
        [],
        {},
        {"create": loop},
        {"create": "a", "data": deep},
    ]:
        with pytest.raises(recto.RectoError):
            store.request(value)
    for text in ["", "{", "\ud800", "[" * 200_000, "{}x", "null"]:
        with pytest.raises(recto.RectoError):
            store.request_json(text)
    with pytest.raises(TypeError):
        store.request_json(7)
    with pytest.raises(TypeError):
        Store.open(7)
    with pytest.raises(TypeError, match="expected_version"):
        store.conversation("a").append(user("x"), expectedVersion=1)


def test_a_number_with_many_digits_is_read(store):
    digits = "9" * 5000
    store.request_json(
        '{"create": "a", "messages": [{"role": "user", "content": "x", "n": %s}]}' % digits
    )
    assert str(store.conversation("a").messages()[0]["n"]) == digits


def test_an_idempotency_key_is_not_applied_twice(store):
    conversation = store.create("support", counter="approx")
    assert conversation.append(user("one"), idempotency_key="k")["version"] == 1
    assert conversation.append(user("one"), idempotency_key="k")["version"] == 1
    assert conversation.append(user("two"), return_state=True)["state"]["totalMessageCount"] == 2


def test_a_closed_store_refuses_requests():
    store = Store.open("memory:")
    assert not store.closed
    store.close()
    store.close()
    assert store.closed
    with pytest.raises(recto.StorageError, match="closed"):
        store.list()


def test_a_file_is_shared_and_kept(tmp_path):
    address = f"sqlite:{tmp_path}/recto.db"
    with Store.open(address) as first, Store.open(address) as second:
        first.create("support").append(user("one"))
        assert second.conversation("support").messages() == [user("one")]
        assert second.search("one")[0]["conversation"] == "support"
    with Store.open(address) as again:
        assert again.conversation("support", create=True).messages() == [user("one")]
    assert Store.shared(address) is Store.shared(address)
    Store.shared(address).close()


def test_a_store_is_not_pickled_and_hides_passwords():
    store = Store.open("memory:")
    with pytest.raises(TypeError, match="address"):
        pickle.dumps(store)
    assert repr(store) == "Store('memory:')"
    assert "secret" not in repr(Store(store._native, "postgres://u:secret@h/d"))


def test_the_version_of_the_api_and_the_fields_decide_which_rules_apply(store):
    cited = {"type": "text", "text": "a", "citations": [{"type": "char_location"}]}
    made_by = {"source": {"provider": "anthropic"}}
    conversation = store.create("cited", counter="approx")
    conversation.append({"role": "user", "content": [cited], "metadata": made_by})
    for version, rules in [(None, []), ("2026-10-21", ["citations_from_the_assistant"])]:
        findings = conversation.lint("anthropic", api_version=version)
        assert [finding["rule"] for finding in findings] == rules
        rendered = conversation.render("anthropic", api_version=version)
        assert [repair["rule"] for repair in rendered["repairs"]] == rules
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    conversation.append({"role": "assistant", "content": [call]})
    conversation.append(
        {"role": "tool", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r"}]}
    )
    enabled = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    for fields, rules in [(None, []), (enabled, ["thinking_of_the_last_calls"])]:
        findings = conversation.lint("anthropic", fields=fields)
        assert [finding["rule"] for finding in findings] == rules


def test_asyncio():
    async def run():
        async with await recto.AsyncStore.open("memory:") as store:
            conversation = await store.create("support", counter="approx")
            await asyncio.gather(*(conversation.append(user(f"{n}")) for n in range(20)))
            assert len(await conversation.messages()) == 20
            fork = await conversation.fork("fork", at=3)
            assert len(await fork.messages()) == 3
            assert [info["name"] async for info in store.conversations()] == ["fork", "support"]
            assert (await conversation.undo())["version"] == 21

    asyncio.run(run())


def test_a_note_is_stored_with_its_version(store):
    conversation = store.create("support", counter="approx")
    conversation.append(user("one"), note={"run": "r-17", "步": [1, None]})
    conversation.append(user("two"))
    conversation.undo(note="why")
    notes = [version.get("note") for version in conversation.versions()]
    assert notes == ["why", None, {"run": "r-17", "步": [1, None]}, None]
    with pytest.raises(recto.InvalidRequest) as large:
        conversation.append(user("x"), note="x" * 20_000)
    assert (large.value.code, large.value.field) == ("too_large", "note")
    assert conversation.version() == 3


def test_a_picture_fits_into_a_message(tmp_path):
    data = "QUJD" * 2_000_000  # 8 MB
    source = {"type": "base64", "media_type": "image/png", "data": data}
    picture = {"role": "user", "content": [{"type": "image", "source": source}]}
    with Store.open(f"sqlite:{tmp_path}/pictures.db") as store:
        conversation = store.create("support")
        assert conversation.append(picture)["stats"]["tokens"] == 1003
        assert conversation.messages() == [picture]
    with Store.open("memory:", max_message_bytes=1000) as store:
        with pytest.raises(recto.InvalidRequest) as large:
            store.create("support").append(user("x" * 1000))
        assert large.value.code == "too_large" and "1000" in large.value.message
