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
    talk = store.create(
        "talk", counter="approx", messages=[{"role": "system", "content": "Be brief."}]
    )
    assert talk.append(user("one"))["version"] == 1
    assert talk.append([user("two"), user("three")], description="two more")["added"] == [2, 3]
    assert [m["content"] for m in talk.messages()] == ["Be brief.", "one", "two", "three"]
    assert talk.hide([1])["hidden"] == [1]
    assert [m["content"] for m in talk.messages()] == ["Be brief.", "two", "three"]
    assert len(talk.messages(at=2)) == 4
    assert talk.diff(2, 3)["hidden"]["indices"] == [1]
    assert [step["effect"] for step in talk.blame(1)] == ["added", "hidden"]
    assert talk.undo()["shown"] == [1]
    assert talk.redo()["hidden"] == [1]
    assert talk.restore([1])["shown"] == [1]
    assert talk.mark([1])["changed"]
    with pytest.raises(recto.PinnedEntry):
        talk.hide([1])
    assert talk.unmark([1])["changed"]
    assert talk.replace(0, {"role": "system", "content": "Be kind."})["changed"]
    assert talk.insert(1, user("zero"))["changed"]
    assert talk.rollback(version=2)["changed"]
    assert talk.query(role="user", last=1)[0]["message"] == user("three")
    assert talk.count(role="user") == 3
    assert talk.versions(limit=1)[0]["version"] == talk.version()
    assert talk.stats()["totalMessages"] == 6
    assert talk.info()["counter"] == "approx"
    fork = talk.fork("fork", at=1)
    assert len(fork.messages()) == 2
    assert [info["name"] for info in store.list()] == ["fork", "talk"]
    assert [info["name"] for info in store.conversations()] == ["fork", "talk"]
    assert talk.render("anthropic", model="claude-sonnet-4-5")["request"]["messages"]
    assert talk.lint("openai-chat") == []
    assert talk.tokens()["messages"] == 4
    assert talk.token_check()["limit"] is None
    assert talk.state()["totalMessageCount"] == 4
    assert talk.snapshot(0)["batchIndex"] == 0
    assert talk.mark_map()["currentBatch"] == 0
    assert talk.marks() == []
    assert talk.set_tools([{"name": "read", "description": "Reads."}])["toolsChanged"]
    assert talk.tools() == [{"name": "read", "description": "Reads."}]
    assert talk.change_settings({"tokenLimit": 9})["tokenLimit"] == 9
    assert talk.settings()["tokenLimit"] == 9
    assert json.loads(talk.export("openai-chat")["data"])
    assert talk.verify()["sound"] and store.verify()["sound"]
    assert talk.fit(22)["stats"]["tokens"] <= 22
    assert talk.preview({"operation": "CLEAR"})["dryRun"]
    assert store.search("three")
    talk.erase([2])
    talk.prune(keep_versions=1)
    renamed = talk.rename("renamed")
    assert renamed.version() == renamed.versions()[0]["version"]
    renamed.remove()
    with pytest.raises(recto.ConversationNotFound):
        renamed.messages()


def test_errors_have_code_field_and_details(store):
    talk = store.create("talk", counter="approx")
    talk.append(user("one"))
    with pytest.raises(recto.VersionConflict) as conflict:
        talk.append(user("two"), expected_version=0)
    assert conflict.value.code == "version_conflict"
    assert conflict.value.field == "expectedVersion"
    assert conflict.value.current_version == 1
    with pytest.raises(recto.InvalidRequest) as invalid:
        talk.apply({"operation": "TRUNCATE", "keeplast": 2})
    assert invalid.value.field == "keeplast" and "keepLast" in invalid.value.message
    with pytest.raises(recto.BudgetTooSmall) as small:
        talk.fit(1)
    assert small.value.needed == 4
    with pytest.raises(recto.NothingToRevert):
        talk.redo()
    with pytest.raises(recto.VersionNotFound):
        talk.messages(at=99)
    with pytest.raises(recto.BatchNotFound):
        talk.snapshot(9)
    with pytest.raises(recto.ConversationExists):
        store.create("talk")
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
    talk = store.create("talk", counter="approx")
    assert talk.append(user("one"), idempotency_key="k")["version"] == 1
    assert talk.append(user("one"), idempotency_key="k")["version"] == 1
    assert talk.append(user("two"), return_state=True)["state"]["totalMessageCount"] == 2


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
        first.create("talk").append(user("one"))
        assert second.conversation("talk").messages() == [user("one")]
        assert second.search("one")[0]["conversation"] == "talk"
    with Store.open(address) as again:
        assert again.conversation("talk", create=True).messages() == [user("one")]
    assert Store.shared(address) is Store.shared(address)
    Store.shared(address).close()


def test_a_store_is_not_pickled_and_hides_passwords():
    store = Store.open("memory:")
    with pytest.raises(TypeError, match="address"):
        pickle.dumps(store)
    assert repr(store) == "Store('memory:')"
    assert "secret" not in repr(Store(store._native, "postgres://u:secret@h/d"))


def test_asyncio():
    async def run():
        async with await recto.AsyncStore.open("memory:") as store:
            talk = await store.create("talk", counter="approx")
            await asyncio.gather(*(talk.append(user(f"{n}")) for n in range(20)))
            assert len(await talk.messages()) == 20
            fork = await talk.fork("fork", at=3)
            assert len(await fork.messages()) == 3
            assert [info["name"] async for info in store.conversations()] == ["fork", "talk"]
            assert (await talk.undo())["version"] == 21

    asyncio.run(run())


def test_a_note_is_stored_with_its_version(store):
    talk = store.create("talk", counter="approx")
    talk.append(user("one"), note={"run": "r-17", "步": [1, None]})
    talk.append(user("two"))
    talk.undo(note="why")
    notes = [version.get("note") for version in talk.versions()]
    assert notes == ["why", None, {"run": "r-17", "步": [1, None]}, None]
    with pytest.raises(recto.InvalidRequest) as large:
        talk.append(user("x"), note="x" * 20_000)
    assert (large.value.code, large.value.field) == ("too_large", "note")
    assert talk.version() == 3


def test_a_picture_fits_into_a_message(tmp_path):
    data = "QUJD" * 2_000_000  # 8 MB
    source = {"type": "base64", "media_type": "image/png", "data": data}
    picture = {"role": "user", "content": [{"type": "image", "source": source}]}
    with Store.open(f"sqlite:{tmp_path}/pictures.db") as store:
        talk = store.create("talk")
        assert talk.append(picture)["stats"]["tokens"] == 1003
        assert talk.messages() == [picture]
    with Store.open("memory:", max_message_bytes=1000) as store:
        with pytest.raises(recto.InvalidRequest) as large:
            store.create("talk").append(user("x" * 1000))
        assert large.value.code == "too_large" and "1000" in large.value.message
