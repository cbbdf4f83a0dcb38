"""A LangChain agent whose requests fit a budget and are valid, whatever happened to the state."""

from itertools import count

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from recto.langchain import RectoMiddleware


class Scripted(BaseChatModel):
    """Stands for a real model: it calls a tool ten times, then answers."""

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        number = next(turns)
        longest.append(len(messages))
        calls = [{"id": f"c{number}", "name": "read", "args": {"path": f"log {number}"}}]
        message = AIMessage(f"turn {number}", tool_calls=calls if number % 11 else [])
        return ChatResult(generations=[ChatGeneration(message=message)])


def read(path: str) -> str:
    """Reads a file."""
    return f"{path}: timeout\n" * 30


turns, longest = count(1), []
context = RectoMiddleware("memory:", budget=1_000, target=600)
agent = create_agent(Scripted(), [read], middleware=[context], checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "t1"}, "recursion_limit": 100}
state = agent.invoke({"messages": [("user", "Why does checkout fail?")]}, config)
print("the state keeps", len(state["messages"]), "messages")
print("the longest request had", max(longest))
for version in context.conversation("t1").versions():
    if version["operation"] == "FIT":
        print("version", version["version"], version["description"])
