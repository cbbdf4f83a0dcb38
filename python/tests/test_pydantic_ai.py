"""RectoContext in agents of Pydantic AI."""

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from recto.pydantic_ai import RectoContext, fit_messages


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


def test_messages_are_the_callers_own():
    agent, _ = agent_with([], calls=3)
    messages = agent.run_sync("go").all_messages()
    fitted = fit_messages(messages, 100_000)
    assert all(one is other for one, other in zip(fitted.messages, messages, strict=True))
    small = fit_messages(messages, 10)
    assert small.messages[0] is messages[0] and small.dropped
