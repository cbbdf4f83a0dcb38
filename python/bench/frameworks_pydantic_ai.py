"""An agent of Pydantic AI whose history is stored after each turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, Tool, capture_run_messages
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.conversation import Conversation
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from scenario import BUDGET, INSTRUCTIONS, KEPT_MESSAGES, TARGET, Provider, Scenario

from recto import Store
from recto.pydantic_ai import RectoContext, RectoConversationStore

NAME = "Pydantic AI"


def newest(messages: list[ModelMessage]) -> list[ModelMessage]:
    """The history processor of Pydantic AI's documentation."""
    return messages[-KEPT_MESSAGES:]


def run(variant: str, provider: Provider, folder: Path) -> dict[str, Any]:
    scenario = Scenario(provider)
    served = OpenAIProvider(base_url=provider.base_url, api_key="none")
    model = OpenAIChatModel("scripted", provider=served)
    capabilities: list[Any] = []
    if variant == "ProcessHistory":
        capabilities = [ProcessHistory(newest)]
    elif variant.startswith("Recto"):
        capabilities = [RectoContext(budget=BUDGET, target=TARGET)]
    read = Tool(scenario.read, name="read", description="Reads a file.")
    agent = Agent(model, instructions=INSTRUCTIONS, tools=[read], capabilities=capabilities)
    is_recto = variant.startswith("Recto")
    store = Store.open(f"sqlite:{folder}/recto.db", search=False) if is_recto else None
    stored = RectoConversationStore(store) if store else None
    file = folder / "history.json"

    async def load() -> list[ModelMessage]:
        if stored:
            conversation = await stored.load("t")
            return conversation.messages if conversation else []
        return ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else []

    async def save(messages: list[ModelMessage]) -> None:
        if not stored:
            file.write_bytes(ModelMessagesTypeAdapter.dump_json(messages))
            return
        conversation = await stored.load("t") or Conversation(conversation_id="t")
        conversation.messages[:] = messages
        await stored.save(conversation)

    async def turn(question: str) -> None:
        history = await load()
        with capture_run_messages() as messages:
            try:
                await agent.run(question, message_history=history, usage_limits=None)
            finally:
                await save([*messages])

    with asyncio.Runner() as runner:
        scenario.ask(lambda question: runner.run(turn(question)), ModelHTTPError)
        left = len(runner.run(load()))
    if store:
        store.close()
    return scenario.row(left, folder)
