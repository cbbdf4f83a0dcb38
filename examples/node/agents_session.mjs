// A session of the OpenAI Agents SDK in a Recto store, with a scripted model.

import { Agent, Runner, setTracingDisabled, tool } from "@openai/agents-core";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { z } from "zod";

import { Store } from "recto-context";
import { RectoSession } from "recto-context/openai-agents";

setTracingDisabled(true);
const read = tool({
  name: "read",
  description: "Reads a file.",
  parameters: z.object({ path: z.string() }),
  execute: async () => "a line of the log\n".repeat(20),
});
const calls = Array.from({ length: 12 }, (_, at) => [functionCall("read", { path: "a.log" }, { callId: `call-${at}` })]);
const model = new ScriptedModel([...calls, [assistantMessage("The disk is full.")]]);
const agent = new Agent({ name: "support", model, tools: [read] });

const session = await RectoSession.open("user-42", await Store.open("memory:"));
const callModelInputFilter = session.fit({ maxTokens: 600 });
const result = await new Runner().run(agent, "Why does checkout fail?", { session, callModelInputFilter, maxTurns: 20 });
console.log(result.finalOutput);
console.log(`the session has ${(await session.getItems()).length} items`);
console.log(`the longest input had ${Math.max(...model.calls.map(({ request }) => request.input.length))}`);
console.log(`rewound ${await session.rewind()} items`);
const branch = await session.fork("what-if", { at: 1 });
console.log(`the branch has ${(await branch.getItems()).length} items`);
