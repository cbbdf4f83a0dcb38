// The adapter of the OpenAI Agents SDK: its session compared with the SDK's own one, and real runs with a scripted
// model.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Agent, MemorySession, Runner, setTracingDisabled, tool } from "@openai/agents-core";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { z } from "zod";

import { BudgetTooSmall, InvalidRequest, Store } from "recto-context";
import { fitInput, RectoSession } from "recto-context/openai-agents";
import { IDS } from "./ids.mjs";

setTracingDisabled(true);

const user = (content) => ({ type: "message", role: "user", content });
const call = (id, name = "read") => ({ type: "function_call", callId: id, name, arguments: "{}", status: "completed" });
const result = (id, output = "ok") => ({ type: "function_call_result", name: "read", callId: id, status: "completed", output });

async function open(id = "s") {
  return RectoSession.open(id, await Store.open("memory:"));
}

/** A generator of numbers that repeats itself with the same seed. */
function random(seed) {
  return (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

function randomItem(next, number) {
  const kinds = [
    user(`text ${number} \u0000 😀`),
    { role: "user", content: [{ type: "input_text", text: "" }, { type: "input_image", image: "data:image/png;base64,AA==" }] },
    { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "" }] },
    { type: "message", role: "system", content: "" },
    call(`c${next(3)}`),
    { ...call(`c${next(3)}`), arguments: "{broken", providerData: { deep: [1, { two: null }] } },
    result(`c${next(3)}`, next(2) ? "done" : { type: "text", text: "done" }),
    result(`c${next(3)}`, { type: "image", image: { data: new Uint8Array([0, 255, 7]), mediaType: "image/png" } }),
    { type: "reasoning", id: `r${number}`, content: [{ type: "input_text", text: "hm" }] },
    { type: "compaction", encrypted_content: "x" },
  ];
  return kinds[next(kinds.length)];
}

for (let seed = 1; seed <= 20; seed++) {
  test(`the session answers as the SDK's own one (seed ${seed})`, async () => {
    const next = random(seed);
    const ours = await open();
    const theirs = new MemorySession({ sessionId: "s" });
    const both = async (run) => {
      const outcomes = [];
      for (const session of [theirs, ours]) {
        outcomes.push(await run(session).then((value) => ({ value }), () => ({ failed: true })));
      }
      assert.deepEqual(outcomes[1], outcomes[0]);
    };
    for (let step = 0; step < 40; step++) {
      const items = Array.from({ length: next(4) }, (_, at) => randomItem(next, step * 10 + at));
      const suffix = (await theirs.getItems()).slice(-1 - next(2));
      const operationId = `op ${next(6)}`;
      const callId = `c${next(3)}`;
      await [
        () => both((session) => session.addItems(items)),
        () => both((session) => session.addItems(items)),
        () => both((session) => session.popItem()),
        () => both((session) => session.applyHistoryMutations({ mutations: [{ type: "replace_function_call", callId, replacement: call(callId, "other") }] })),
        () => both((session) => session.applyHistoryTransaction({ operationId, transaction: { type: "append_items", items: [user(String(step)), ...items.slice(1)] } })),
        () => both((session) => session.applyHistoryTransaction({ operationId, transaction: { type: "replace_suffix", expectedSuffix: suffix, replacement: [user(String(step))] } })),
        () => both((session) => session.applyHistoryTransaction({ operationId, transaction: { type: "replace_suffix", expectedSuffix: [user("not there")], replacement: [] } })),
      ][next(7)]();
      const limit = [undefined, -1, 0, 1, 5][next(5)];
      await both((session) => session.getItems(limit));
    }
    // The caller may change the returned items.
    const [first] = await ours.getItems();
    if (first) first.role = "changed";
    assert.deepEqual(await ours.getItems(), await theirs.getItems());
    await both((session) => session.clearSession());
    await both((session) => session.getItems());
    ours.conversation.store.close();
  });
}

test("a transaction is applied once, also if it is repeated by another process and after later changes", async () => {
  const place = mkdtempSync(join(tmpdir(), "recto-"));
  const address = `sqlite:${join(place, "conversations.db")}`;
  const first = await RectoSession.open("s", await Store.open(address));
  await first.addItems([user("a"), user("b")]);
  const replace = {
    operationId: "turn 1",
    transaction: { type: "replace_suffix", expectedSuffix: [user("b")], replacement: [user("c"), call("1")] },
  };
  await first.applyHistoryTransaction(replace);
  await first.addItems([result("1")]);
  const second = await RectoSession.open("s", await Store.open(address));
  await Promise.all([second.applyHistoryTransaction(replace), first.applyHistoryTransaction(replace)]);
  assert.deepEqual(await second.getItems(), [user("a"), user("c"), call("1"), result("1")]);
  const other = { ...replace, transaction: { type: "append_items", items: [user("x")] } };
  await assert.rejects(second.applyHistoryTransaction(other), InvalidRequest);
  const [one, two] = [1, 2].map((number) => ({ operationId: "both", transaction: { type: "append_items", items: [user(`n${number}`)] } }));
  const settled = await Promise.allSettled([first.applyHistoryTransaction(one), second.applyHistoryTransaction(two)]);
  assert.deepEqual(settled.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  assert.equal((await first.getItems()).length, 5);
  for (const session of [first, second]) session.conversation.store.close();
  rmSync(place, { recursive: true });
});

test("wrong transactions are refused with their field and change nothing", async () => {
  const session = await open();
  await session.addItems([user("a")]);
  const items = [user("b")];
  for (const [args, field] of [
    [{ operationId: " ", transaction: { type: "append_items", items } }, "operationId"],
    [{ operationId: "o", transaction: { type: "append", items } }, "transaction.type"],
    [{ operationId: "o", transaction: { type: "append_items", items: "b" } }, "transaction.items"],
    [{ operationId: "o", transaction: undefined }, "transaction.type"],
  ]) {
    await assert.rejects(session.applyHistoryTransaction(args), (error) => error instanceof InvalidRequest && error.field === field);
  }
  await assert.rejects(session.addItems([user("b"), { ...user("c"), providerData: { run: () => 1 } }]), InvalidRequest);
  assert.deepEqual(await session.getItems(), [user("a")]);
});

test("a session is rewound, undone and forked", async () => {
  const session = await open();
  await session.addItems([user("a"), call("1"), result("1")]);
  await session.addItems([user("b"), call("2"), result("2")]);
  const at = await session.conversation.version();
  assert.equal(await session.rewind(), 3);
  assert.deepEqual(await session.getItems(), [user("a"), call("1"), result("1")]);
  await session.undo();
  assert.equal((await session.getItems()).length, 6);
  assert.equal(await session.rewind({ steps: 1 }), 1);
  const branch = await session.fork("what-if", { at });
  assert.equal(await branch.getSessionId(), "what-if");
  await branch.addItems([user("c")]);
  assert.equal((await branch.getItems()).length, 7);
  assert.equal((await session.getItems()).length, 5);
});

for (const prefix of ["agents/", "", "@"]) test(`any text is an id of a session and of a fork (prefix "${prefix}")`, async () => {
  const store = await Store.open("memory:");
  for (const [at, id] of IDS.entries()) {
    const session = await RectoSession.open(id, store, { prefix });
    await session.addItems([user(`item ${at}`)]);
    assert.equal(await session.getSessionId(), id);
    const branch = await session.fork(`fork ${id}`);
    assert.deepEqual(await branch.getItems(), [user(`item ${at}`)]);
    const back = await branch.fork(`${id} again`);
    assert.deepEqual(await back.getItems(), [user(`item ${at}`)]);
  }
  for (const [at, id] of IDS.entries()) {
    const session = await RectoSession.open(id, store, { prefix });
    assert.deepEqual(await session.getItems(), [user(`item ${at}`)]);
  }
  const mine = await RectoSession.open("user-42", store, { prefix: "mine/" });
  assert.deepEqual([mine.conversation.name, (await mine.fork("b")).conversation.name], ["mine/user-42", "mine/b"]);
  assert.equal((await RectoSession.open("user-42", store)).conversation.name, "agents/user-42");
});

/** Fails as the provider does if a call has no result, or a result no call. */
function checkPairs(input) {
  const calls = input.filter((item) => item.type === "function_call").map((item) => item.callId);
  const results = input.filter((item) => item.type === "function_call_result").map((item) => item.callId);
  assert.deepEqual([...calls].sort(), [...results].sort());
}

test("each model call of a long tool loop fits the budget, and the session keeps all items", async () => {
  const read = tool({ name: "read", description: "Reads.", parameters: z.object({ path: z.string() }), execute: async () => "word ".repeat(60) });
  const steps = Array.from({ length: 30 }, (_, at) => [functionCall("read", { path: "f" }, { callId: `c${at}` })]);
  const model = new ScriptedModel([...steps, [assistantMessage("done")], [assistantMessage("again")]]);
  const agent = new Agent({ name: "a", model, tools: [read] });
  const session = await open();
  const runner = new Runner();
  const options = () => ({ session, maxTurns: 50, callModelInputFilter: session.fit({ maxTokens: 1000, targetTokens: 500, counter: "approx" }) });
  assert.equal((await runner.run(agent, "go", options())).finalOutput, "done");
  assert.equal((await runner.run(agent, "and?", options())).finalOutput, "again");
  const inputs = model.calls.map(({ request }) => request.input);
  assert.equal(inputs.length, 32);
  inputs.forEach(checkPairs);
  const longest = Math.max(...inputs.map((input) => input.length));
  assert(longest < 25, `${longest} items in one request`);
  // Between two cuts the front of the request stays the same, which a prompt cache needs.
  const text = inputs.map((input) => input.map((item) => JSON.stringify(item)));
  const kept = text.slice(1, 31).filter((items, at) => text[at].every((item, place) => item === items[place]));
  assert(kept.length >= 22, `${kept.length} of 30 requests start as the one before`);
  assert.equal((await session.getItems()).length, 64);
});

test("a call without a result, after a crash, does not end the session", async () => {
  const session = await open();
  await session.addItems([user("a"), call("lost")]);
  const model = new ScriptedModel([[assistantMessage("hello")]]);
  const agent = new Agent({ name: "a", model });
  await new Runner().run(agent, "are you there?", { session, callModelInputFilter: fitInput({ maxTokens: 1000 }) });
  checkPairs(model.calls[0].request.input);
  // In a session, the SDK drops such a call. In an input list, the filter adds a result.
  const modelData = { input: await session.getItems() };
  const { input } = await fitInput({ maxTokens: 1000 })({ modelData, agent, context: undefined });
  const made = input.find((item) => item.type === "function_call_result");
  assert.deepEqual([made.callId, made.name, made.status], ["lost", "read", "completed"]);
  assert(!(await session.getItems()).some((item) => item.type === "function_call_result"));
});

test("items that need no repair are the caller's objects, and a budget that is too small is an error", async () => {
  const filter = fitInput({ maxTokens: 100, counter: "approx" });
  const input = [user("a"), call("1"), result("1")];
  const modelData = { input, instructions: "Be brief." };
  const shaped = await filter({ modelData, agent: undefined, context: undefined });
  assert.equal(shaped.instructions, "Be brief.");
  assert(shaped.input.every((item, at) => item === input[at]));
  const small = fitInput({ maxTokens: 2, counter: "approx" });
  await assert.rejects(async () => small({ modelData, agent: undefined, context: undefined }), BudgetTooSmall);
});

test("arguments that are not JSON are stored as text", async () => {
  for (const text of ["NaN", "1e999", '"\\ud800"', "[".repeat(5_000), "9".repeat(5_000), "{"]) {
    const session = await RectoSession.open("s", await Store.open("memory:"));
    const call = { type: "function_call", callId: "c", name: "read", arguments: text, status: "completed" };
    await session.addItems([call]);
    assert.deepEqual(await session.getItems(), [call]);
  }
});

test("wrong types are refused with the name of the field", async () => {
  const store = await Store.open("memory:");
  await assert.rejects(RectoSession.open(7, store), /^TypeError: id must be a string, not number/);
  await assert.rejects(RectoSession.open("s", "memory:"), /^TypeError: store must be a store, not string/);
  await assert.rejects(RectoSession.open("s", store, { prefix: 7 }), /^TypeError: prefix must be a string, not number/);
  const session = await RectoSession.open("s", store);
  await assert.rejects(session.fork(7), /^TypeError: id must be a string, not number/);
  await assert.rejects(session.addItems("all"), /^TypeError: items must be a list, not string/);
  await assert.rejects(session.addItems([7]), /^TypeError: items\[0\] must be an object, not number/);
  assert.throws(() => session.fit({ maxTokens: "many" }), /^TypeError: maxTokens must be a number, not string/);
  assert.deepEqual(await session.getItems(), []);
  await session.addItems([user("one"), user("two")]);
  await assert.rejects(session.rewind({ steps: "one" }), /^TypeError: steps must be a number, not string/);
  for (const steps of [NaN, -1, 0.5]) await assert.rejects(session.rewind({ steps }), { field: "steps" });
  assert.equal(await session.rewind({ steps: 0 }), 0);
  assert.equal((await session.getItems()).length, 2);
});
