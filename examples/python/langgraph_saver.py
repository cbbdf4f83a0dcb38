"""A LangGraph checkpointer whose storage grows with what is new."""

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from recto.langgraph import RectoSaver


def answer(state: MessagesState):
    return {"messages": [AIMessage(f"answer {len(state['messages'])}")]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)

saver = RectoSaver(InMemorySaver(), "memory:")  # any checkpointer inside
app = builder.compile(checkpointer=saver)
config = {"configurable": {"thread_id": "t1"}}
for question in ["Why does checkout fail?", "And in June?"]:
    app.invoke({"messages": [("user", question)]}, config)

conversation = saver.conversation("t1")  # the same thread, as Recto stores it
print(conversation.stats()["totalMessages"], "messages in", conversation.version(), "versions")
saver.copy_thread("t1", "what-if")  # copies no messages
print("forked from", saver.conversation("what-if").info()["forkedFrom"]["version"])
