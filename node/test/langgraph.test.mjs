// The checkpointer of LangGraph: the official suite, random histories compared with MemorySaver, and real agents.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver, MessagesAnnotation, REMOVE_ALL_MESSAGES, Send, StateGraph } from "@langchain/langgraph";
import { uuid6 } from "@langchain/langgraph-checkpoint";
import { createAgent } from "langchain";
import { z } from "zod";

import { ConversationNotFound, Store } from "recto-context";
import { RectoSaver } from "recto-context/langgraph";
import { IDS } from "./ids.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

test("the official suite of checkpointers passes", () => {
  const vitest = join(createRequire(import.meta.url).resolve("vitest/package.json"), "../vitest.mjs");
  const { stdout } = spawnSync(process.execPath, [vitest, "run", "--reporter", "json"], { cwd: root, maxBuffer: 1 << 28 });
  const report = JSON.parse(stdout.toString().slice(stdout.indexOf("{")));
  const failed = report.testResults.flatMap((file) => file.assertionResults).filter(({ status }) => status === "failed");
  assert.deepEqual(failed.map(({ fullName }) => fullName).slice(0, 10), []);
  assert.deepEqual([report.numPassedTests >= 717, report.numFailedTests], [true, 0], `${report.numPassedTests} passed`);
});

/** A graph that adds, replaces and removes the messages that it is given. */
function graph(checkpointer) {
  const node = ({ messages }) => ({ messages: [new AIMessage({ id: `a${messages.length}`, content: `answer ${messages.length}` })] });
  return new StateGraph(MessagesAnnotation).addNode("n", node).addEdge("__start__", "n").compile({ checkpointer });
}

/** All checkpoints of a thread as JSON. Ids of checkpoints and times differ between two runs. */
async function history(app, config) {
  const states = [];
  for await (const { values, metadata, next } of app.getStateHistory(config)) {
    states.push({ values: (values.messages ?? []).map((message) => message.toDict()), step: metadata.step, next });
  }
  return JSON.parse(JSON.stringify(states));
}

function random(seed) {
  return (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

for (let seed = 1; seed <= 12; seed++) {
  test(`histories are those of MemorySaver (seed ${seed})`, async () => {
    const store = await Store.open("memory:");
    const run = async (saver) => {
      const next = random(seed);
      const app = graph(saver);
      let config = { configurable: { thread_id: `thread/${seed} ü` } };
      for (let step = 0; step < 12; step++) {
        const { messages = [] } = (await app.getState(config)).values;
        const id = messages[next(messages.length || 1)]?.id;
        const given = [
          [new HumanMessage({ id: `h${step}`, content: `question ${step}` })],
          [new HumanMessage({ id: `h${step}`, content: [{ type: "text", text: "a" }, { type: "image_url", image_url: "data:," }] }),
            new AIMessage({ id: `c${step}`, content: "", tool_calls: [{ id: "1", name: "f", args: { x: 1 } }] }),
            new ToolMessage({ id: `t${step}`, tool_call_id: "1", content: "ok", artifact: { deep: [1] } })],
          id ? [new RemoveMessage({ id })] : [new HumanMessage({ id: "first", content: "" })],
          id ? [new HumanMessage({ id, content: "changed", additional_kwargs: { k: 1 } })] : [],
          [new RemoveMessage({ id: REMOVE_ALL_MESSAGES }), new HumanMessage({ id: `n${step}`, content: "anew" })],
        ][next(5)];
        if (next(4) === 0) await app.updateState(config, { messages: given }, "n");
        else await app.invoke({ messages: given }, config);
        if (next(4) > 0) continue;
        // Continue from an earlier checkpoint: a fork.
        const all = [];
        for await (const state of app.getStateHistory({ configurable: { thread_id: `thread/${seed} ü` } })) all.push(state.config);
        config = all[next(all.length)];
        await app.updateState(config, { messages: [new HumanMessage({ id: `f${step}`, content: "fork" })] }, "n");
        config = { configurable: { thread_id: `thread/${seed} ü` } };
      }
      return history(app, config);
    };
    const expected = await run(new MemorySaver());
    assert(expected.length > 12);
    assert.deepEqual(await run(new RectoSaver(new MemorySaver(), store)), expected);
    store.close();
  });
}

test("a saver without a cache reads what another one wrote, and continues it", async () => {
  const place = mkdtempSync(join(tmpdir(), "recto-"));
  const inner = new MemorySaver();
  const config = { configurable: { thread_id: "t" } };
  const stores = [];
  for (let turn = 0; turn < 4; turn++) {
    const store = await Store.open(`sqlite:${join(place, "conversations.db")}`);
    stores.push(store);
    const app = graph(new RectoSaver(inner, store));
    await app.invoke({ messages: [new HumanMessage({ id: `h${turn}`, content: `question ${turn}` })] }, config);
    assert.equal((await app.getState(config)).values.messages.length, 2 * turn + 2);
  }
  const saver = new RectoSaver(inner, stores[0]);
  // Every message was stored once.
  assert.equal((await saver.conversation("t").stats()).totalMessages, 8);
  assert.equal((await saver.conversation("t").query({ scope: "all" })).length, 8);
  stores.forEach((store) => store.close());
  rmSync(place, { recursive: true });
});

test("two savers on one thread lose nothing", async () => {
  const store = await Store.open("memory:");
  const inner = new MemorySaver();
  const savers = [new RectoSaver(inner, store), new RectoSaver(inner, store)];
  const puts = Array.from({ length: 20 }, async (_, at) => {
    const messages = [new HumanMessage({ id: `h${at}`, content: `question ${at}` })];
    const checkpoint = { v: 4, id: uuid6(at), ts: "", channel_values: { messages }, channel_versions: { messages: 1 }, versions_seen: {} };
    const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
    return savers[at % 2].put(config, checkpoint, { source: "loop", step: at, parents: {} }, { messages: 1 });
  });
  for (const [at, config] of (await Promise.all(puts)).entries()) {
    const { checkpoint } = await savers[0].getTuple(config);
    assert.deepEqual(checkpoint.channel_values.messages.map(({ content }) => content), [`question ${at}`]);
  }
});

test("a serializer that does not write JSON keeps the messages in the inner saver", async () => {
  const store = await Store.open("memory:");
  const inner = new MemorySaver();
  const { serde } = inner;
  // As a serializer that encrypts does.
  const flip = (bytes) => bytes.map((byte) => byte ^ 255);
  const text = new TextDecoder();
  inner.serde = {
    dumpsTyped: async (value) => ["secret", flip((await serde.dumpsTyped(value))[1])],
    loadsTyped: (type, bytes) => serde.loadsTyped("json", typeof bytes === "string" ? bytes : text.decode(flip(bytes))),
  };
  const app = graph(new RectoSaver(inner, store));
  const config = { configurable: { thread_id: "t" } };
  await app.invoke({ messages: [new HumanMessage("my password")] }, config);
  assert.equal((await app.getState(config)).values.messages.length, 2);
  const [conversation] = await store.list();
  assert.equal(conversation === undefined || (await store.conversation(conversation.name).count({ scope: "all" })) === 0, true);
});

test("a serializer that encrypts and writes JSON keeps the messages in the inner saver", async () => {
  const text = new TextDecoder();
  const bytes = (value) => new TextEncoder().encode(JSON.stringify(value));
  const hidden = (value) => ({ enc: Buffer.from(value).toString("hex") });
  const { serde } = new MemorySaver();
  const encrypted = [
    // All of a value.
    async (value) => ["json", bytes(hidden((await serde.dumpsTyped(value))[1]))],
    // Bytes that are not JSON.
    async (value) => ["json", (await serde.dumpsTyped(value))[1].map((byte) => byte ^ 255)],
    // The contents of messages.
    async (value) => {
      const dump = JSON.parse(text.decode((await serde.dumpsTyped(value))[1]));
      if (dump?.lc === 1 && dump.kwargs) dump.kwargs.content = hidden(JSON.stringify(dump.kwargs.content));
      return ["json", bytes(dump)];
    },
  ];
  for (const dumpsTyped of encrypted) {
    const store = await Store.open("memory:");
    const inner = new MemorySaver();
    inner.serde = { dumpsTyped, loadsTyped: serde.loadsTyped.bind(serde) };
    const messages = [new HumanMessage("my password"), new HumanMessage({ content: [{ type: "text", text: "my password" }] })];
    const checkpoint = { v: 4, id: uuid6(0), ts: "", channel_values: { messages }, channel_versions: { messages: 1 }, versions_seen: {} };
    const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
    await new RectoSaver(inner, store).put(config, checkpoint, { source: "loop", step: 0, parents: {} }, { messages: 1 });
    assert.deepEqual(await store.list(), []);
  }
});

test("a field of a message that is assigned later is in the next checkpoint", async () => {
  const changes = {
    response_metadata: (message) => (message.response_metadata = { model: "m" }),
    additional_kwargs: (message) => (message.additional_kwargs = { k: 1 }),
    name: (message) => (message.name = message.lc_kwargs.name = "ann"),
    usage_metadata: (message) => (message.usage_metadata = message.lc_kwargs.usage_metadata = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }),
    tool_calls: (message) => message.tool_calls.push({ id: "c", name: "f", args: {}, type: "tool_call" }),
    content: (message) => (message.content = "changed"),
  };
  const run = async (saver, change) => {
    const messages = [new HumanMessage({ id: "h", content: "hi" }), new AIMessage({ id: "a", content: "answer" })];
    const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
    const contents = [];
    for (let step = 0; step < 3; step++) {
      if (step === 1) change(messages[1]);
      if (step === 2) messages.push(new HumanMessage({ id: "m", content: "more" }));
      const checkpoint = { v: 4, id: uuid6(step), ts: "", channel_values: { messages }, channel_versions: { messages: step + 1 }, versions_seen: {} };
      const put = await saver.put(config, checkpoint, { source: "loop", step, parents: {} }, { messages: step + 1 });
      const stored = await saver.getTuple(put);
      contents.push(stored.checkpoint.channel_values.messages.map((message) => message.toDict()));
    }
    return JSON.parse(JSON.stringify(contents));
  };
  const unchanged = await run(new MemorySaver(), () => {});
  for (const [name, change] of Object.entries(changes)) {
    const expected = await run(new MemorySaver(), change);
    assert.notDeepEqual(expected, unchanged, name);
    assert.deepEqual(await run(new RectoSaver(new MemorySaver(), await Store.open("memory:")), change), expected, name);
  }
});

test("deleting a thread removes its conversations, and not those of a similar name", async () => {
  const store = await Store.open("memory:");
  const saver = new RectoSaver(new MemorySaver(), store);
  const app = graph(saver);
  for (const thread_id of ["t", "t1", "t/x", "t".repeat(500)]) {
    await app.invoke({ messages: [new HumanMessage("hi")] }, { configurable: { thread_id } });
  }
  await saver.deleteThread("t");
  await assert.rejects(saver.conversation("t").messages(), ConversationNotFound);
  assert.deepEqual((await app.getState({ configurable: { thread_id: "t" } })).values, {});
  for (const thread_id of ["t1", "t/x", "t".repeat(500)]) {
    assert.equal((await saver.conversation(thread_id).messages()).length, 2);
    assert.equal((await app.getState({ configurable: { thread_id } })).values.messages.length, 2);
  }
});

test("any text is the id of a thread, and each thread has its own messages", async () => {
  const store = await Store.open("memory:");
  const saver = new RectoSaver(new MemorySaver(), store);
  const ids = IDS.filter((id) => id !== ""); // LangGraph refuses it
  for (const [at, thread_id] of ids.entries()) {
    await graph(saver).invoke({ messages: [new HumanMessage(`thread ${at}`)] }, { configurable: { thread_id } });
  }
  for (const [at, id] of ids.entries()) assert.equal((await saver.conversation(id).messages())[0].content, `thread ${at}`);
});

test("a long thread takes space for each message once", async () => {
  const place = mkdtempSync(join(tmpdir(), "recto-"));
  const file = join(place, "conversations.db");
  const store = await Store.open(`sqlite:${file}`, { search: false });
  const inner = new MemorySaver();
  const app = graph(new RectoSaver(inner, store));
  const config = { configurable: { thread_id: "t" } };
  const content = "word ".repeat(240);
  for (let turn = 0; turn < 60; turn++) await app.invoke({ messages: [new HumanMessage(`${turn} ${content}`)] }, config);
  store.close();
  const plain = new MemorySaver();
  const other = graph(plain);
  for (let turn = 0; turn < 60; turn++) await other.invoke({ messages: [new HumanMessage(`${turn} ${content}`)] }, config);
  const bytes = (saver) => JSON.stringify(saver.storage, (_, value) => (value instanceof Uint8Array ? "x".repeat(value.length) : value)).length;
  const ratio = bytes(plain) / (bytes(inner) + statSync(file).size);
  assert(ratio > 8, `${ratio} times smaller`);
  rmSync(place, { recursive: true });
});

test("an agent with tools takes space for each message once, and its tasks have all messages", async () => {
  class Scripted extends BaseChatModel {
    calls = 0;
    _llmType() {
      return "scripted";
    }
    bindTools() {
      return this;
    }
    async _generate() {
      const id = `c${this.calls++}`;
      const calls = [id, `${id}b`].map((id) => ({ id, name: "read", args: { path: "f" }, type: "tool_call" }));
      const message = this.calls > 30 ? new AIMessage({ id, content: "done" }) : new AIMessage({ id, content: "", tool_calls: calls });
      return { generations: [{ text: "", message }] };
    }
  }
  const config = { configurable: { thread_id: "t" }, recursionLimit: 200 };
  const run = async (checkpointer) => {
    const read = tool(async () => "word ".repeat(100), { name: "read", description: "Reads.", schema: z.object({ path: z.string() }) });
    const agent = createAgent({ model: new Scripted({}), tools: [read], checkpointer });
    await agent.invoke({ messages: [new HumanMessage({ id: "h", content: "go" })] }, config);
    const found = [];
    for await (const { checkpoint, metadata, pendingWrites } of checkpointer.list(config)) {
      const tasks = [checkpoint.channel_values.__pregel_tasks, pendingWrites.filter(([, channel]) => channel === "__pregel_tasks")];
      found.push({ step: metadata.step, tasks: JSON.parse(JSON.stringify(tasks)), messages: checkpoint.channel_values.messages?.length });
    }
    // Ids of tasks and of results differ between two runs.
    return JSON.parse(JSON.stringify(found).replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "id"));
  };
  const bytes = (saver) => JSON.stringify([saver.storage, saver.writes], (_, value) => (value instanceof Uint8Array ? "x".repeat(value.length) : value)).length;
  const plain = new MemorySaver();
  const expected = await run(plain);
  const place = mkdtempSync(join(tmpdir(), "recto-"));
  const file = join(place, "conversations.db");
  const store = await Store.open(`sqlite:${file}`, { search: false });
  const inner = new MemorySaver();
  const saver = new RectoSaver(inner, store);
  assert.deepEqual(await run(saver), expected);
  assert.equal((await saver.conversation("t").query({ scope: "all" })).length, 92);
  store.close();
  const ratio = bytes(plain) / (bytes(inner) + statSync(file).size);
  assert(ratio > 10, `${ratio} times smaller`);
  rmSync(place, { recursive: true });
});

test("tasks with other messages than those of the thread change no conversation", async () => {
  const worker = ({ messages }) => ({ messages: [new AIMessage({ id: messages[0].id.replace("w", "a"), content: "done" })] });
  const run = async (saver) => {
    const app = new StateGraph(MessagesAnnotation)
      .addNode("plan", () => ({}))
      .addNode("worker", worker)
      .addEdge("__start__", "plan")
      .addConditionalEdges("plan", () => [1, 2, 3].map((at) => new Send("worker", { messages: [new HumanMessage({ id: `w${at}`, content: `part ${at}` })] })), ["worker"])
      .compile({ checkpointer: saver });
    const config = { configurable: { thread_id: "t" } };
    await app.invoke({ messages: [new HumanMessage({ id: "h", content: "go" })] }, config);
    return history(app, config);
  };
  const saver = new RectoSaver(new MemorySaver(), await Store.open("memory:"));
  assert.deepEqual(await run(saver), await run(new MemorySaver()));
  const contents = (await saver.conversation("t").query({ scope: "all" })).map(({ message }) => message.content);
  assert.deepEqual(contents, ["go", "done", "done", "done"]);
});

test("wrong types are refused with the name of the field", async () => {
  const store = await Store.open("memory:");
  assert.throws(() => new RectoSaver({}, store), /^TypeError: inner must be a checkpointer, not object/);
  assert.throws(() => new RectoSaver(undefined, store), /^TypeError: inner must be a checkpointer, not undefined/);
  assert.throws(() => new RectoSaver(new MemorySaver(), "memory:"), /^TypeError: store must be a store, not string/);
});
