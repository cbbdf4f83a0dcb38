"""Lists of messages that are not stored."""

import subprocess
import sys

import pytest

import recto


def user(text):
    return {"role": "user", "content": text}


def call(identity, text=""):
    part = {"type": "tool_use", "id": identity, "name": "read", "input": {"path": identity}}
    return {"role": "assistant", "content": [{"type": "text", "text": text or "I read."}, part]}


def result(identity, text):
    part = {"type": "tool_result", "tool_use_id": identity, "content": text}
    return {"role": "tool", "content": [part]}


def test_fit_returns_the_callers_own_objects():
    messages = [
        {"role": "system", "content": "Be brief."},
        user("first"),
        call("a"),
        result("a", "x " * 100),
        user("second"),
        call("b"),
        result("b", "y " * 20),
    ]
    fitted = recto.fit(messages, 70, counter="approx")
    assert fitted.positions == [0, 4, 5, 6]
    assert all(shown is messages[at] for shown, at in zip(fitted.messages, fitted.positions))
    assert fitted.dropped == [1, 2, 3]
    assert fitted.tokens <= 70 < fitted.tokens_before
    everything = recto.fit(messages, 10_000, target_tokens=1, counter="approx")
    assert everything.messages == messages
    kept = recto.fit(messages, 70, keep=[1], counter="approx")
    assert kept.positions == [0, 1, 4, 5, 6]


def test_fit_never_separates_a_call_from_its_result():
    messages = [user("go")]
    for number in range(20):
        messages += [call(str(number)), result(str(number), "x " * number)]
    for budget in range(60, 1500, 7):
        try:
            fitted = recto.fit(messages, budget, counter="approx")
        except recto.BudgetTooSmall as error:
            assert error.needed > budget
            continue
        roles = [message["role"] for message in fitted.messages if message["role"] != "user"]
        assert roles == ["assistant", "tool"] * (len(roles) // 2)


def test_repair_makes_only_what_is_missing():
    messages = [user("go"), call("a"), call("b"), result("b", "found"), user("next")]
    repaired = recto.repair(messages, "anthropic", counter="approx")
    made = [at for at, position in enumerate(repaired.positions) if position is None]
    assert len(made) == 1
    placeholder = repaired.messages[made[0]]
    assert placeholder["role"] == "tool"
    assert placeholder["content"][0]["tool_use_id"] == "a"
    assert [p for p in repaired.positions if p is not None] == [0, 1, 2, 3, 4]
    assert any(one["rule"] == "answered_calls" for one in repaired.repairs)
    again = recto.repair(repaired.messages, "anthropic", counter="approx")
    assert again.messages == repaired.messages


def test_repair_of_one_lost_result_of_two():
    both = call("a")
    both["content"].append({"type": "tool_use", "id": "b", "name": "read", "input": {}})
    messages = [user("go"), both, result("a", "found"), user("next")]
    repaired = recto.repair(messages, "openai-chat", counter="approx")
    assert [p for p in repaired.positions if p is not None] == [0, 1, 2, 3]
    assert repaired.positions.count(None) == 1


def test_formats_of_frameworks():
    items = [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x " * 200},
        {"role": "user", "content": "next"},
        {"type": "function_call", "call_id": "b", "name": "read", "arguments": "{}"},
    ]
    fitted = recto.fit(
        items, 60, format="openai-responses", counter="approx", repair_for="openai-responses"
    )
    assert fitted.messages[:2] == items[3:]
    assert fitted.messages[2]["type"] == "function_call_output"
    assert fitted.messages[2]["call_id"] == "b"


def test_messages_of_another_format_are_refused_with_the_format_to_give():
    function = {"name": "read", "arguments": "{}"}
    lost = {"id": "a", "type": "function", "function": function}
    messages = [
        user("go"),
        {"role": "assistant", "content": "Let me look.", "tool_calls": [lost]},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
    ]
    for name, work in [
        ("fit", lambda **options: recto.fit(messages, 10_000, **options)),
        ("repair", lambda **options: recto.repair(messages, "openai-chat", **options)),
        ("countTokens", lambda **options: recto.count_tokens(messages, **options)),
    ]:
        with pytest.raises(recto.InvalidRequest, match="give the format") as caught:
            work()
        assert caught.value.field == f"{name}[1]"
        assert caught.value.details == {"format": "openai-chat"}
        work(format="openai-chat")


def test_langchain_messages():
    core = pytest.importorskip("langchain_core.messages")
    lost = {"id": "a", "name": "read", "args": {}}
    messages = [
        core.HumanMessage("go"),
        core.AIMessage("", tool_calls=[lost]),
        core.HumanMessage("next"),
        core.AIMessage(""),
    ]
    repaired = recto.repair(messages, "openai-chat", counter="approx")
    kept = [m for m in repaired.messages if any(m is given for given in messages)]
    assert kept[:3] == messages[:3]
    made = [m for m in repaired.messages if not any(m is given for given in messages)]
    assert isinstance(made[0], core.ToolMessage) and made[0].tool_call_id == "a"
    assert recto.count_tokens(messages) > 0


def test_langchain_messages_with_objects_that_are_not_json():
    core = pytest.importorskip("langchain_core.messages")
    call = {"id": "c", "name": "read", "args": {"path": "f", "handle": object()}}
    messages = [
        core.HumanMessage("half a character: \ud83d", response_metadata={"raw": float("nan")}),
        core.AIMessage("", tool_calls=[call]),
        core.ToolMessage("found", tool_call_id="c", artifact={1, 2}),
        core.AIMessage("", tool_calls=[{**call, "id": "lost"}]),
    ]
    fitted = recto.fit(messages, 1000, repair_for="openai-chat")
    assert all(one is other for one, other in zip(fitted.messages, messages))
    assert len(fitted.messages) == 5 and fitted.messages[4].tool_call_id == "lost"
    repaired = recto.repair(messages, "anthropic")
    assert [at for at in repaired.positions if at is not None] == [0, 1, 2, 3]
    assert recto.count_tokens(messages) == recto.fit(messages, 1000).tokens
    # Only what is not JSON is counted as another text.
    plain = [core.HumanMessage("hello"), core.ToolMessage("found", tool_call_id="c")]
    with_artifact = [plain[0], core.ToolMessage("found", tool_call_id="c", artifact=object())]
    assert recto.count_tokens(plain) == recto.count_tokens(with_artifact)


def test_count_tokens():
    assert recto.count_tokens("hello world") == 2
    assert recto.count_tokens("") == 0
    assert recto.count_tokens("hello world", counter="approx") == 3
    assert recto.count_tokens([user("hello world")]) == 5
    assert recto.count_tokens(user("hello world")) == 5
    assert recto.count_tokens([]) == 0


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (([7], 10), "fit[0]"),
        (([user("x"), "text"], 10), "fit[1]"),
        (([object()], 10), "fit[0]"),
        ((7, 10), "fit"),
        (("text", 10), "fit"),
        (([user("x")], -1), "maxTokens"),
        (([user("x")], "many"), "maxTokens"),
    ],
)
@pytest.mark.parametrize("format", [None, "recto"])
def test_wrong_values(arguments, field, format):
    with pytest.raises(recto.InvalidRequest) as error:
        recto.fit(*arguments, format=format)
    assert error.value.field == field


def test_foreign_objects_without_langchain():
    program = """
import sys
sys.modules["langchain_core"] = None  # importing it fails
import recto
for name, work in [("fit", lambda it: recto.fit(it, 10)), ("countTokens", recto.count_tokens),
                   ("repair", lambda it: recto.repair(it, "anthropic"))]:
    for value in [7, object(), ("user", "x"), b"x"]:
        try:
            work([value])
        except recto.InvalidRequest as error:
            assert error.field == f"{name}[0]", (name, value, error.field)
        else:
            raise AssertionError(value)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_foreign_objects_between_langchain_messages():
    core = pytest.importorskip("langchain_core.messages")
    for name, work in [
        ("fit", lambda it: recto.fit(it, 10)),
        ("countTokens", recto.count_tokens),
        ("repair", lambda it: recto.repair(it, "anthropic")),
    ]:
        with pytest.raises(recto.InvalidRequest) as error:
            work([core.HumanMessage("x"), 7])
        assert error.value.field == f"{name}[1]"
    # A list may contain messages of LangChain and other forms of messages that LangChain accepts.
    assert recto.count_tokens([core.HumanMessage("x"), ("user", "x"), user("x")]) == 12


def test_the_token_counter_of_langchain():
    core = pytest.importorskip("langchain_core.messages")
    messages = [core.HumanMessage(f"message {at}", id=str(at)) for at in range(20)]
    trimmed = core.trim_messages(messages, max_tokens=30, token_counter=recto.count_tokens)
    assert trimmed == messages[-len(trimmed) :] and 0 < len(trimmed) < 20
    assert recto.count_tokens(trimmed) <= 30 < recto.count_tokens(messages[-len(trimmed) - 1 :])


def test_wrong_options():
    for options, field in [
        ({"counter": "abacus"}, "counter"),
        ({"format": "morse"}, "format"),
        ({"format": "codex"}, None),
        ({"target_tokens": 11}, "targetTokens"),
        ({"keep": [1]}, "keep"),
        ({"start_on": "unknown"}, "startOn"),
        ({"repair_for": "unknown"}, "repairFor"),
    ]:
        with pytest.raises(recto.RectoError) as error:
            recto.fit([user("x")], 10, **options)
        assert error.value.field == field, options
    with pytest.raises(recto.BudgetTooSmall) as small:
        recto.fit([user("x" * 100)], 10, counter="approx")
    assert small.value.needed == 28
