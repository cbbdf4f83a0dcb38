"""Fit and repair a list of messages before a model call. Nothing is stored."""

import recto

messages = [{"role": "system", "content": "You are on call."}]
for number in range(40):
    messages.append({"role": "user", "content": f"Question {number}: why does checkout fail?"})
    call = {"id": f"call_{number}", "type": "function"}
    call["function"] = {"name": "read_logs", "arguments": "{}"}
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "timeout " * 20})
del messages[-1]  # the process ended before the last result was stored

fitted = recto.fit(
    messages, max_tokens=500, target_tokens=300, format="openai-chat", repair_for="openai-chat"
)
print(f"{len(messages)} messages, {fitted.tokens_before} tokens")
print(f"{len(fitted.messages)} messages, {fitted.tokens} tokens are sent")
print("made:", fitted.messages[-1])
