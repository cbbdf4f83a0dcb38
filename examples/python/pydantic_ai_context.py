"""A Pydantic AI agent whose requests fit a budget, and a stored conversation with a branch."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from recto.pydantic_ai import RectoContext, RectoConversationStore

longest = []


def scripted(messages, info):
    """Stands for a real model: it calls a tool twelve times, then answers."""
    longest.append(len(messages))
    if len(longest) % 13:
        call = ToolCallPart(
            "read", {"path": f"log {len(longest)}"}, tool_call_id=f"c{len(longest)}"
        )
        return ModelResponse(parts=[call])
    return ModelResponse(parts=[TextPart("The gateway times out.")])


context = RectoContext(budget=1_000, target=600)
agent = Agent(FunctionModel(scripted), capabilities=[context], system_prompt="You are on call.")


@agent.tool_plain
def read(path: str) -> str:
    return f"{path}: timeout\n" * 30


async def main():
    store = RectoConversationStore("memory:")
    conversation = Conversation(conversation_id="user-42")
    result = await agent.run("Why does checkout fail?", conversation=conversation)
    await store.save(result)
    print("the history has", len(result.all_messages()), "messages")
    print("the longest request had", max(longest))

    loaded = await store.load("user-42")
    await store.branch("user-42", at=1, expected_revision=loaded.revision)
    stored = store.conversation("user-42")
    print("the branch has", len(stored.messages()), "message, version 1 has", end=" ")
    print(len(stored.messages(at=1)))


asyncio.run(main())
