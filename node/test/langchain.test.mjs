// The middleware of LangChain in real agents with a scripted model that refuses what a provider refuses.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { z } from "zod";

import { Store } from "recto-context";
import { rectoMiddleware } from "recto-context/langchain";
import { IDS } from "./ids.mjs";

/** A model that gives these answers one after the other, and records what it reads. */
class Scripted extends BaseChatModel {
  constructor(answers) {
    super({});
    this.answers = [...answers];
    this.requests = [];
  }
  _llmType() {
    return "scripted";
  }
  bindTools() {
    return this;
  }
  async _generate(messages) {
    checkPairs(messages);
    this.requests.push(messages);
    const message = this.answers.shift() ?? new AIMessage("done");
    return { generations: [{ text: "", message }] };
  }
}

/** Fails as a provider does if a call is not answered at once, or a result has no call. */
function checkPairs(messages) {
  let pending = new Set();
  for (const message of messages) {
    if (message.getType() === "tool") assert(pending.delete(message.tool_call_id), "a result without a call");
    else {
      assert.equal(pending.size, 0, "a call without a result");
      pending = new Set((message.tool_calls ?? []).map(({ id }) => id));
    }
  }
  assert.equal(pending.size, 0, "a call without a result at the end");
}

const call = (id) => new AIMessage({ content: "", tool_calls: [{ id, name: "read", args: { path: "f" } }] });
const calls = (count, start = 0) => Array.from({ length: count }, (_, at) => call(`c${start + at}`));
const read = tool(async () => "word ".repeat(60), { name: "read", description: "Reads.", schema: z.object({ path: z.string() }) });

async function agentWith(answers, options = {}) {
  const store = await Store.open("memory:");
  const reports = [];
  const context = await rectoMiddleware(store, {
    maxTokens: 1000,
    targetTokens: 500,
    counter: "approx",
    onReport: (report) => reports.push(report),
    ...options,
  });
  const model = new Scripted(answers);
  const agent = createAgent({ model, tools: [read], middleware: [context.middleware], checkpointer: new MemorySaver() });
  return { agent, context, model, reports };
}
const config = { configurable: { thread_id: "t" }, recursionLimit: 200 };

test("each model call of a long tool loop fits the budget, and the state keeps all messages", async () => {
  const { agent, context, model, reports } = await agentWith(calls(30));
  const { messages } = await agent.invoke({ messages: [new HumanMessage("go")] }, config);
  assert.equal(messages.length, 62);
  assert.equal(model.requests.length, 31);
  const longest = Math.max(...model.requests.map((request) => request.length));
  assert(longest < 25, `${longest} messages in one request`);
  assert(reports.every(({ tokens }) => tokens <= 1000));
  const cuts = reports.filter(({ hidden }) => hidden > 0).length;
  assert(cuts >= 3 && cuts <= 8, `${cuts} cuts`);
  // Between two cuts the front of the request stays the same, which a prompt cache needs.
  const ids = model.requests.map((request) => request.map(({ id }) => id));
  const kept = ids.slice(1).filter((request, at) => ids[at].every((id, place) => id === request[place])).length;
  assert.equal(kept, 30 - cuts);
  // Each cut is a version with its reason.
  const versions = await context.conversation("t").versions({ limit: 1000 });
  const fits = versions.filter(({ operation }) => operation === "FIT");
  assert.equal(fits.length, cuts);
  assert.match(fits[0].description, /tokens are over the budget of 1000/);
  assert.equal((await context.conversation("t").query({ scope: "all" })).length, 61);
});

test("messages that need no repair are the objects of the state", async () => {
  const { context } = await agentWith([]);
  const given = [new HumanMessage({ id: "1", content: "a" }), new AIMessage({ id: "2", content: "b" })];
  const shaped = await context.shape("t", given);
  assert(shaped.every((message, at) => message === given[at]));
});

test("a call without a result, after a crash, is answered in the request and not in the state", async () => {
  const { agent, model, reports } = await agentWith([]);
  await agent.graph.updateState(config, { messages: [new HumanMessage("a"), call("lost")] });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("are you there?")] }, config);
  assert.deepEqual(messages.map((message) => message.getType()), ["human", "ai", "human", "ai"]);
  const [request] = model.requests;
  assert.equal(request.find((message) => message.getType() === "tool").tool_call_id, "lost");
  assert(reports[0].repairs.some(({ rule }) => rule === "answered_calls"));
});

test("a cut that is undone by hand is not repeated until the thread is resumed", async () => {
  const { agent, context, model, reports } = await agentWith(calls(14));
  await agent.invoke({ messages: [new HumanMessage("go")] }, config);
  const conversation = context.conversation("t");
  const newest = await conversation.versions({ limit: 50 });
  const cut = newest.find(({ operation }) => operation === "FIT");
  assert(cut);
  await conversation.rollback({ version: cut.version - 1 });
  const before = reports.length;
  await agent.invoke({ messages: [new HumanMessage("and?")] }, config);
  const [report] = reports.slice(before);
  assert.deepEqual([report.paused, report.hidden], [true, 0]);
  assert(report.tokens > 1000);
  await context.resume("t");
  await agent.invoke({ messages: [new HumanMessage("now?")] }, config);
  assert(reports.at(-1).hidden > 0 && reports.at(-1).tokens <= 1000);
  assert.equal(model.requests.length, reports.length);
});

test("replaced and removed messages of the state are replaced and hidden in the conversation", async () => {
  const { agent, context, model } = await agentWith([]);
  await agent.invoke({ messages: [new HumanMessage({ id: "h1", content: "first" }), new HumanMessage({ id: "h2", content: "second" })] }, config);
  await agent.graph.updateState(config, { messages: [new HumanMessage({ id: "h1", content: "changed" }), new RemoveMessage({ id: "h2" })] });
  await agent.invoke({ messages: [new HumanMessage({ id: "h3", content: "third" })] }, config);
  assert.deepEqual(model.requests.at(-1).map(({ content }) => content), ["changed", "done", "third"]);
  assert.deepEqual((await context.conversation("t").messages()).map(({ content }) => content), ["changed", "done", "third"]);
  await context.conversation("t").rollback({ version: 1 });
  assert.deepEqual((await context.conversation("t").messages()).map(({ content }) => content), ["first", "second"]);
});

test("messages that are shown again by hand have their calls, media and other fields", async () => {
  const { agent, context, model } = await agentWith([], { maxTokens: 5000, targetTokens: 5000 });
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const given = [
    new HumanMessage({ id: "h1", content: [{ type: "text", text: "what is this?" }, image], name: "ann" }),
    new AIMessage({
      id: "a1",
      content: "I look.",
      tool_calls: [{ id: "c1", name: "read", args: { path: "f" }, type: "tool_call" }],
      response_metadata: { model: "m" },
    }),
    new ToolMessage({ id: "t1", tool_call_id: "c1", name: "read", content: "found", status: "error", artifact: { rows: [1] } }),
  ];
  await agent.invoke({ messages: given }, config);
  const conversation = context.conversation("t");
  const indices = (await conversation.entries()).slice(0, 3).map(({ index }) => index);
  await agent.graph.updateState(config, { messages: given.map(({ id }) => new RemoveMessage({ id })) });
  await agent.invoke({ messages: [new HumanMessage({ id: "h2", content: "and?" })] }, config);
  assert.deepEqual(model.requests.at(-1).map(({ content }) => content), ["done", "and?"]);
  await conversation.restore(indices);
  await agent.invoke({ messages: [new HumanMessage({ id: "h3", content: "again?" })] }, config);
  const request = model.requests.at(-1);
  const dicts = (messages) => JSON.parse(JSON.stringify(messages.map((message) => message.toDict())));
  const back = given.map(({ id }) => request.find((message) => message.id === id));
  assert.deepEqual(dicts(back), dicts(given));
  // A text is stored once.
  const [entry] = await conversation.entries([indices[2]]);
  assert.equal(JSON.stringify(entry.message).split("found").length, 2);
});

test("messages that another program appended have their calls", async () => {
  const { context } = await agentWith([]);
  const given = [new HumanMessage({ id: "1", content: "a" })];
  await context.shape("t", given);
  await context.conversation("t").append([
    { role: "assistant", content: [{ type: "text", text: "I look." }, { type: "tool_use", id: "c", name: "read", input: { path: "f" } }] },
    { role: "tool", content: [{ type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "gone" }], is_error: true }] },
    { role: "user", content: "and?" },
  ]);
  const [first, call, result, last] = await context.shape("t", given);
  assert.equal(first, given[0]);
  assert.deepEqual([call.getType(), call.content, call.tool_calls.map(({ id, name, args }) => [id, name, args])], ["ai", "I look.", [["c", "read", { path: "f" }]]]);
  assert.deepEqual([result.getType(), result.content, result.tool_call_id, result.status], ["tool", "gone", "c", "error"]);
  assert.deepEqual([last.getType(), last.content], ["human", "and?"]);
});

test("a message with other media is replaced, and an equal one of another process is not", async () => {
  const store = await Store.open("memory:");
  const image = (data) => new HumanMessage({ id: "1", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } }] });
  const version = async (message) => {
    const context = await rectoMiddleware(store, { maxTokens: 5000, counter: "approx" });
    const [shaped] = await context.shape("t", [message]);
    assert.equal(shaped, message);
    return context.conversation("t").version();
  };
  assert.deepEqual([await version(image("AAAA")), await version(image("AAAA")), await version(image("BBBB"))], [1, 1, 2]);
});

test("fields that are not JSON do not end a run", async () => {
  const { context } = await agentWith([]);
  const loop = {};
  loop.self = loop;
  const given = [
    new HumanMessage({ id: "h", content: "half \ud800 of a pair" }),
    new AIMessage({ id: "a", content: "", tool_calls: [{ id: "c", name: "read", args: { size: Infinity }, type: "tool_call" }] }),
    new ToolMessage({ id: "t", tool_call_id: "c", content: "ok", artifact: new Map([[1, loop]]) }),
  ];
  for (let turn = 0; turn < 2; turn++) {
    const shaped = await context.shape("t", given);
    assert(shaped.every((message, at) => message === given[at]));
  }
  const stored = await context.conversation("t").messages();
  assert.deepEqual(stored.map(({ id }) => id), ["h", "a", "t"]);
  assert.equal(await context.conversation("t").version(), 1);
  assert.equal(stored[1].content[0].input.size, "Infinity");
});

test("another process continues the conversation of a thread", async () => {
  const store = await Store.open("memory:");
  const given = [new HumanMessage({ id: "1", content: "a" }), new AIMessage({ id: "2", content: "b" })];
  for (let process = 0; process < 2; process++) {
    const context = await rectoMiddleware(store, { maxTokens: 1000, counter: "approx" });
    assert.equal((await context.shape("t", given)).length, 2);
    assert.equal((await context.conversation("t").query({ scope: "all" })).length, 2);
  }
});

test("messages that left the state and return are shown again, also in another process", async () => {
  const store = await Store.open("memory:");
  const given = Array.from({ length: 5 }, (_, at) => new HumanMessage({ id: String(at), content: String(at) }));
  const older = [given[0], new HumanMessage({ id: "x", content: "x" })]; // a run from an older checkpoint
  for (const messages of [given, older, given, older, given]) {
    const context = await rectoMiddleware(store, { maxTokens: 1000, counter: "approx" });
    const shaped = await context.shape("t", messages);
    assert.deepEqual(shaped.map(({ content }) => content), messages.map(({ content }) => content));
  }
});

test("messages that leave the state and return are shown again in a process that has seen them before", async () => {
  const store = await Store.open("memory:");
  const [one, two] = await Promise.all([1, 2].map(() => rectoMiddleware(store, { maxTokens: 1000, counter: "approx" })));
  const given = Array.from({ length: 5 }, (_, at) => new HumanMessage({ id: String(at), content: String(at) }));
  const changed = given.with(2, new HumanMessage({ id: "2", content: "changed" }));
  const older = [given[0], new HumanMessage({ id: "x", content: "x" })];
  for (const [context, messages] of [[one, given], [two, older], [one, given], [two, changed], [one, older], [two, changed], [one, given]]) {
    const shaped = await context.shape("t", messages);
    assert.deepEqual(shaped.map(({ content }) => content), messages.map(({ content }) => content));
  }
});

test("any text is the id of a thread, and each thread has its own messages", async () => {
  const store = await Store.open("memory:");
  const context = await rectoMiddleware(store, { maxTokens: 1000, counter: "approx", prefix: "" });
  for (const [at, id] of IDS.entries()) await context.shape(id, [new HumanMessage({ id: "1", content: `thread ${at}` })]);
  for (const [at, id] of IDS.entries()) {
    assert.deepEqual((await context.conversation(id).messages()).map(({ content }) => content), [`thread ${at}`]);
  }
});

test("calls of one thread at the same time record each message once", async () => {
  const { context } = await agentWith([]);
  const given = Array.from({ length: 10 }, (_, at) => new HumanMessage({ id: String(at), content: `message ${at}` }));
  await Promise.all(given.map((_, at) => context.shape("t", given.slice(0, at + 1))));
  assert.equal((await context.conversation("t").messages()).length, 10);
});

test("a model call that is repeated reads the same messages", async () => {
  const { agent, context, model } = await agentWith([...calls(20)]);
  await agent.invoke({ messages: [new HumanMessage("go")] }, config);
  const { messages } = (await agent.graph.getState(config)).values;
  const version = await context.conversation("t").version();
  const first = await context.shape("t", messages);
  const again = await context.shape("t", messages);
  assert(first.length < messages.length && first.every((message, at) => message === again[at]));
  assert((await context.conversation("t").version()) <= version + 1);
  // Another middleware calls the handler again after a failure.
  let failures = 2;
  const generate = model._generate.bind(model);
  model._generate = async (request) => {
    checkPairs(request);
    model.requests.push(request);
    if (failures-- > 0) throw new Error("overloaded");
    return generate(request);
  };
  const before = model.requests.length;
  const { createMiddleware } = await import("langchain");
  const retry = createMiddleware({
    name: "Retry",
    wrapModelCall: async (request, handler) => {
      for (;;) {
        try {
          return await handler(request);
        } catch {}
      }
    },
  });
  const retried = createAgent({ model, tools: [read], middleware: [retry, context.middleware], checkpointer: new MemorySaver() });
  await retried.invoke({ messages: [...messages, new HumanMessage({ id: "again", content: "and?" })] }, config);
  const ids = model.requests.slice(before).map((request) => request.map(({ id }) => id).join());
  assert(ids.length >= 3 && ids[0] === ids[1] && ids[1] === ids[2]);
});

test("wrong types are refused with the name of the field", async () => {
  const store = await Store.open("memory:");
  const typeError = (field) => (error) => error instanceof TypeError && error.message.startsWith(`${field} must be`);
  await assert.rejects(rectoMiddleware({}, { maxTokens: 10 }), typeError("store"));
  await assert.rejects(rectoMiddleware(store), typeError("options"));
  await assert.rejects(rectoMiddleware(store, { maxTokens: "many" }), typeError("maxTokens"));
  await assert.rejects(rectoMiddleware(store, { maxTokens: -1 }), { field: "maxTokens" });
  const context = await rectoMiddleware(store, { maxTokens: 100, counter: "approx" });
  await assert.rejects(context.shape(7, []), typeError("threadId"));
  await assert.rejects(context.shape("t", "all"), typeError("messages"));
  await assert.rejects(context.shape("t", [{ role: "user", content: "x" }]), typeError("messages[0]"));
  const wrong = await rectoMiddleware(store, { maxTokens: 100, counter: "mine" });
  await assert.rejects(wrong.shape("u", [new HumanMessage("x")]), { name: "InvalidRequest", field: "settings.counter" });
  assert.deepEqual(await store.list(), []);
});
