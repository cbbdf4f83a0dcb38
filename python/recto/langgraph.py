"""LangGraph checkpointers that keep messages in Recto.

``RectoSaver`` wraps any checkpointer. It takes the messages out of each checkpoint, stores them as a
conversation, and leaves a reference to its version. A checkpoint then takes the space of what is new in
it, instead of the whole history. ``RectoCheckpointer`` needs no other checkpointer: everything is in the
Recto store.

>>> from langgraph.checkpoint.memory import InMemorySaver
>>> saver = RectoSaver(InMemorySaver(), "memory:")
>>> saver = RectoCheckpointer("memory:")
"""

from ._extras import missing

try:
    from ._langgraph_checkpointer import RectoCheckpointer
    from ._langgraph_saver import RectoSaver
except ModuleNotFoundError as error:
    raise missing(error, "langgraph") from None

__all__ = ["RectoCheckpointer", "RectoSaver"]
