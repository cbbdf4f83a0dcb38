"""A session of the OpenAI Agents SDK that bounds long tool loops and can be rewound."""

import asyncio

from agents import Agent, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from recto.openai_agents import RectoSession

set_tracing_disabled(True)


@function_tool
def read(path: str) -> str:
    return f"{path}: timeout\n" * 30


async def main():
    calls = [[function_call("read", {"path": f"log {n}"}, call_id=f"c{n}")] for n in range(12)]
    script = [*calls, [assistant_message("The gateway times out.")], [assistant_message("No.")]]
    model = ScriptedModel(script)
    agent = Agent(name="on call", model=model, tools=[read])
    session = RectoSession("user-42", "memory:")
    config = RunConfig(call_model_input_filter=session.fit(max_tokens=1_000))
    await Runner.run(
        agent, "Why does checkout fail?", session=session, run_config=config, max_turns=50
    )
    await Runner.run(agent, "And in June?", session=session, run_config=config)
    print("the session has", len(await session.get_items()), "items")
    print("the longest input had", max(len(call.input) for call in model.calls))
    print("rewound", await session.rewind(), "items")
    branch = await session.fork("what-if", at=1)
    print("the branch starts with", len(await branch.get_items()), "item")


asyncio.run(main())
