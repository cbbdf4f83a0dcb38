"""The loop of an agent over `recto exec`. Run it: python3 examples/exec_loop.py"""

import json

from exec_client import Recto

ADD = {
    "name": "add",
    "description": "Adds two numbers.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    },
}


def call_model(request):
    """Stands for the call of OpenAI: returns `choices[0].message` of its response."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return {"role": "assistant", "content": f"The sum is {last['content']}."}
    a, b = (int(word) for word in last["content"].split() if word.isdigit())
    function = {"name": "add", "arguments": json.dumps({"a": a, "b": b})}
    call = {"id": f"call_{a}_{b}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def run_tool(call):
    arguments = json.loads(call["function"]["arguments"])
    result = str(arguments["a"] + arguments["b"])
    return {"role": "tool", "tool_call_id": call["id"], "content": result}


def answer(recto, name, question):
    def ask(**fields):
        return recto.request(conversation=name, **fields)

    ask(op={"operation": "APPEND", "messages": [{"role": "user", "content": question}]})
    while True:
        check = ask(tokenCheck=True)
        if check["compressionRequested"]:
            ask(op={"operation": "FIT", "maxTokens": check["targetTokens"], "startOn": "user"})
        request = ask(render="openai-chat", model="gpt-5")["request"]
        message = call_model(request)
        ask(append=message, format="openai-chat")
        calls = message.get("tool_calls", [])
        if not calls:
            return message["content"]
        ask(append=[run_tool(call) for call in calls], format="openai-chat")


if __name__ == "__main__":
    recto = Recto("memory:")
    compression = {"enabled": True, "threshold": 150, "targetTokens": 100}
    settings = {"tools": [ADD], "compression": compression}
    recto.request(create="sums", settings=settings)
    for number in range(1, 6):
        print(answer(recto, "sums", f"Add {number} and 10 please"))
    stats = recto.request(conversation="sums", stats=True)
    print(stats["currentBatchMessages"], "of", stats["totalMessages"], "messages are visible")
