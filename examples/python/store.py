"""A conversation with versions: append, cut to a budget, undo, fork."""

import recto

store = recto.Store.open("memory:")  # or "sqlite:recto.db", or "postgres://…"
conversation = store.create("support")
conversation.append({"role": "system", "content": "You are on call."})
conversation.append([
    {"role": "user", "content": "Checkout fails in the European region since this morning!"},
    {"role": "assistant", "content": "Since when exactly?"},
])  # fmt: skip

cut = conversation.fit(16, description="the model reads 16 tokens")
visible = len(conversation.messages())
print("the model reads", visible, "of", cut["stats"]["totalMessages"], "messages")
print("hidden by", conversation.blame(1)[-1]["description"])

conversation.undo()
print("after undo:", len(conversation.messages()), "messages")
fork = conversation.fork("what if", at=1)
print("the fork has", len(fork.messages()), "message and copied none")
