"""Names of conversations that are made of ids."""

import hashlib
import random
import re

import pytest
from hostile import IDS

import recto
from recto import Store
from recto._names import checked_prefix, conversation_name, name_part


@pytest.mark.parametrize("prefix", ["agents/", "", "x" * 250])
def test_any_id_is_a_name(prefix):
    store = Store.open("memory:")
    for identity in [*IDS, "\ud800"]:
        name = conversation_name(prefix, identity)
        store.create(name, counter="approx")
        assert len(name.encode()) <= 512
    assert len(store.list()) == len(IDS) + 1


def test_usual_ids_stay_readable():
    assert conversation_name("agents/", IDS[0]) == f"agents/{IDS[0]}"
    assert conversation_name("", "user-42") == "user-42"
    assert name_part("用户 42") == "用户 42"


def test_the_names_are_those_of_the_node_package():
    # The same list as in node/test/names.test.mjs.
    assert [name_part(text) for text in ["a:b@c", "a/b%", "\n\x85", "用户 42", "\u2028"]] == [
        "a:b@c",
        "a%2Fb%25",
        "%0A%C2%85",
        "用户 42",
        "\u2028",
    ]
    assert name_part("x" * 121) == "%%" + hashlib.sha256(b"x\0" * 121).hexdigest()
    assert name_part("\ud800") == "%%" + hashlib.sha256(b"\x00\xd8").hexdigest()


def test_different_ids_have_different_parts():
    rnd = random.Random(1)
    chars = ["%", "/", "\n", "\x16", "\u1680", "\ud800", "8", "0", "1", "6", "A", "a", "中"]
    texts = {"".join(rnd.choices(chars, k=rnd.randint(0, 5))) for _ in range(20_000)}
    long = "x" * 1000
    digest = hashlib.sha256(long.encode("utf-16-le")).hexdigest()
    texts |= {long, f"%%{digest}", f"%{digest}", chr(int(digest[:2], 16)) + digest[2:]}
    parts = {name_part(text) for text in texts}
    assert len(parts) == len(texts)
    assert not any(re.search(r"[/\x00-\x1f]", part) for part in parts)


@pytest.mark.parametrize("prefix", [7, None, "x" * 251, "a\nb", "\0", "\ud800"])
def test_a_prefix_that_no_name_can_have(prefix):
    with pytest.raises(recto.InvalidRequest) as error:
        checked_prefix(prefix)
    assert error.value.field == "prefix"
