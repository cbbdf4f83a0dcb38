"""A conversation with versions: append, cut to a budget, undo, fork."""

import recto

store = recto.Store.open("memory:")  # or "sqlite:talks.db", or "postgres://…"
talk = store.create("support")
talk.append({"role": "system", "content": "You are on call."})
talk.append([
    {"role": "user", "content": "Checkout fails in the European region since this morning!"},
    {"role": "assistant", "content": "Since when exactly?"},
])  # fmt: skip

cut = talk.fit(16, description="the model reads 16 tokens")
print("the model reads", len(talk.messages()), "of", cut["stats"]["totalMessages"], "messages")
print("hidden by", talk.blame(1)[-1]["description"])

talk.undo()
print("after undo:", len(talk.messages()), "messages")
fork = talk.fork("what if", at=1)
print("the fork has", len(fork.messages()), "message and copied none")
