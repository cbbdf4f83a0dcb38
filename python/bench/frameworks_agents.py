"""An agent of the OpenAI Agents SDK with a session in SQLite."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.exceptions import UserError
from agents.extensions import ToolOutputTrimmer
from agents.memory import SessionSettings
from agents.models.openai_responses import OpenAIResponsesModel
from agents.run import RunConfig
from openai import AsyncOpenAI, BadRequestError
from scenario import BUDGET, INSTRUCTIONS, KEPT_MESSAGES, TARGET, Provider, Scenario

from recto import Store
from recto.openai_agents import RectoSession

NAME = "OpenAI Agents SDK"


def run(variant: str, provider: Provider, folder: Path) -> dict[str, Any]:
    set_tracing_disabled(True)
    scenario = Scenario(provider)
    client = AsyncOpenAI(base_url=provider.base_url, api_key="none", max_retries=0)
    # The exception of the tool ends the run.
    read: FunctionTool = function_tool(
        scenario.read, description_override="Reads a file.", failure_error_function=None
    )
    agent = Agent(
        name="investigator",
        instructions=INSTRUCTIONS,
        model=OpenAIResponsesModel("scripted", client),
        tools=[read],
    )
    config = RunConfig()
    store: Store | None = None
    session: Any
    if variant.startswith("Recto"):
        store = Store.open(f"sqlite:{folder}/recto.db", search=False)
        session = RectoSession("s", store)
        config.call_model_input_filter = session.fit(BUDGET, target_tokens=TARGET)
    else:
        session = SQLiteSession("s", f"{folder}/session.db")
    if variant == "SessionSettings(limit)":
        session.session_settings = SessionSettings(limit=KEPT_MESSAGES)
    elif variant == "ToolOutputTrimmer":
        config.call_model_input_filter = ToolOutputTrimmer(recent_turns=1)

    with asyncio.Runner() as runner:

        def turn(question: str) -> None:
            work = Runner.run(agent, question, session=session, run_config=config, max_turns=100)
            try:
                runner.run(work)
            except UserError as error:  # the SDK's form of an exception of a tool
                raise error.__cause__ or error from None

        scenario.ask(turn, BadRequestError)
        if variant == "SessionSettings(limit)":
            session.session_settings = SessionSettings()
        left = len(runner.run(session.get_items()))
    store.close() if store else session.close()
    return scenario.row(left, folder)
