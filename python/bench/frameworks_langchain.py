"""An agent of LangChain whose state LangGraph stores in SQLite."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware, wrap_model_call
from langchain_core.messages import trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from openai import BadRequestError
from scenario import BUDGET, INSTRUCTIONS, KEPT_MESSAGES, TARGET, Provider, Scenario

from recto import Store, count_tokens
from recto.langchain import RectoMiddleware
from recto.langgraph import RectoSaver

NAME = "LangChain, LangGraph"
CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000}


def trimming(counter: Any) -> Any:
    """The example of LangChain's documentation of ``trim_messages``, for each model call."""

    @wrap_model_call
    def trimmed(request: Any, handler: Any) -> Any:
        messages = trim_messages(
            request.messages,
            strategy="last",
            token_counter=counter,
            max_tokens=BUDGET,
            start_on="human",
            end_on=("human", "tool"),
        )
        return handler(request.override(messages=messages))

    return trimmed


def run(variant: str, provider: Provider, folder: Path) -> dict[str, Any]:
    scenario = Scenario(provider)
    read = tool(description="Reads a file.")(scenario.read)
    model = ChatOpenAI(model="scripted", base_url=provider.base_url, api_key="none", max_retries=0)
    with ExitStack() as stack:
        saver: Any = stack.enter_context(SqliteSaver.from_conn_string(f"{folder}/state.db"))
        middleware: list[Any] = []
        if variant == "trim_messages":
            middleware = [trimming(count_tokens_approximately)]
        elif variant == "trim_messages, recto.count_tokens":
            middleware = [trimming(count_tokens)]
        elif variant == "SummarizationMiddleware":
            keep = ("messages", KEPT_MESSAGES)
            middleware = [SummarizationMiddleware(model, trigger=("tokens", BUDGET), keep=keep)]
        elif variant.startswith("Recto"):
            store = stack.enter_context(Store.open(f"sqlite:{folder}/recto.db", search=False))
            middleware = [RectoMiddleware(store, budget=BUDGET, target=TARGET)]
            saver = RectoSaver(saver, store)
        agent: Any = create_agent(
            model, [read], system_prompt=INSTRUCTIONS, middleware=middleware, checkpointer=saver
        )
        scenario.ask(
            lambda question: agent.invoke({"messages": [("user", question)]}, CONFIG),
            BadRequestError,
        )
        messages = agent.get_state(CONFIG).values["messages"]
        # A summary is a message that the middleware has marked.
        left = sum("lc_source" not in message.additional_kwargs for message in messages)
    return scenario.row(left, folder)
