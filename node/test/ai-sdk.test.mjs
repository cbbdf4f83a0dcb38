// The adapter of the AI SDK, in real loops of both major versions with scripted models.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BudgetTooSmall } from "recto-context";
import { prepareStep, recto } from "recto-context/ai-sdk";
import { IDS } from "./ids.mjs";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const MAJORS = [
  { name: "ai", test: "ai/test", mock: "MockLanguageModelV3", node: 18 },
  { name: "ai7", test: "ai7/test", mock: "MockLanguageModelV4", node: 22 },
];

/** A model that calls a tool `calls` times and then answers. It records the messages of each call. */
function scripted(Mock, calls) {
  const prompts = [];
  const model = new Mock({
    doGenerate: async ({ prompt }) => {
      prompts.push(prompt);
      const number = prompts.length;
      const call = { type: "tool-call", toolCallId: `c${number}`, toolName: "read", input: '{"path":"f"}' };
      const isDone = number > calls;
      return {
        content: isDone ? [{ type: "text", text: "done" }] : [call],
        finishReason: isDone ? { unified: "stop", raw: "s" } : { unified: "tool-calls", raw: "t" },
        usage,
        warnings: [],
      };
    },
  });
  return { model, prompts };
}

/** Fails as a provider does if a call has no result, or a result no call. */
function checkPairs(prompt) {
  let pending = new Set();
  for (const message of prompt) {
    const parts = Array.isArray(message.content) ? message.content : [];
    if (message.role === "tool") {
      for (const part of parts) assert(pending.delete(part.toolCallId), `a result without a call: ${part.toolCallId}`);
    } else {
      assert.equal(pending.size, 0, "a call without a result");
      pending = new Set(parts.filter((part) => part.type === "tool-call").map((part) => part.toolCallId));
    }
  }
  assert.equal(pending.size, 0, "a call without a result at the end");
}

for (const major of MAJORS) {
  const skip = Number(process.versions.node.split(".")[0]) < major.node && `needs Node ${major.node}`;

  test(`${major.name}: each step of a long tool loop fits the budget`, { skip }, async () => {
    const { generateText, jsonSchema, stepCountIs, isStepCount, tool } = await import(major.name);
    const { [major.mock]: Mock } = await import(major.test);
    const inputSchema = jsonSchema({ type: "object", properties: { path: { type: "string" } } });
    const tools = { read: tool({ description: "Reads.", inputSchema, execute: async () => "word ".repeat(60) }) };
    const { model, prompts } = scripted(Mock, 30);
    const cuts = [];
    const given = [];
    const fit = prepareStep({ maxTokens: 1000, targetTokens: 500, counter: "approx", onCut: (cut) => cuts.push(cut) });
    const result = await generateText({
      model,
      tools,
      stopWhen: (stepCountIs ?? isStepCount)(40),
      messages: [{ role: "user", content: "go" }],
      prepareStep: (step) => (given.push(step.messages.length), fit(step)),
    });
    assert.equal(result.text, "done");
    assert.equal(prompts.length, 31);
    prompts.forEach(checkPairs);
    const longest = Math.max(...prompts.map((prompt) => prompt.length));
    assert(longest < 25, `${longest} messages in one request`);
    assert(cuts.length >= 3 && cuts.length <= 8, `${cuts.length} cuts`);
    assert(cuts.every((cut) => cut.tokens <= 500 && cut.tokensBefore > 1000));
    // The response has every message: the history was not changed.
    assert.equal((result.responseMessages ?? result.response.messages).length, 61);
    // Between two cuts the front of the request stays the same, which a prompt cache needs.
    const isFront = (short, long) => short.every((message, at) => JSON.stringify(message) === JSON.stringify(long[at]));
    const kept = prompts.slice(1).filter((prompt, at) => isFront(prompts[at], prompt)).length;
    assert.equal(kept, 30 - cuts.length);
  });

  test(`${major.name}: a torn history is repaired before the model is called`, { skip }, async () => {
    const { generateText, jsonSchema, tool } = await import(major.name);
    const { [major.mock]: Mock } = await import(major.test);
    const tools = { read: tool({ description: "Reads.", inputSchema: jsonSchema({ type: "object" }) }) };
    const call = (id) => ({ type: "tool-call", toolCallId: id, toolName: "read", input: {} });
    const output = { type: "text", value: "late" };
    const result = (id) => ({ role: "tool", content: [{ type: "tool-result", toolCallId: id, toolName: "read", output }] });
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: [call("lost"), call("late")] },
      { role: "user", content: "never mind" },
      result("late"),
      result("unknown"),
      { role: "user", content: "and?" },
    ];
    const { model, prompts } = scripted(Mock, 0);
    // Without it, the SDK refuses the messages, or sends them as they are (6.0.0).
    const error = await generateText({ model, tools, messages }).then(() => undefined, String);
    if (error) assert.match(error, /[Tt]ool result/);
    else assert.throws(() => checkPairs(prompts.at(-1)));
    const answer = await generateText({ model, tools, messages, prepareStep: prepareStep({ maxTokens: 10_000 }) });
    assert.equal(answer.text, "done");
    checkPairs(prompts.at(-1));
    assert(JSON.stringify(prompts.at(-1)).includes("late"));
    assert.equal(messages.length, 6);
  });

  test(`${major.name}: approved and denied calls are answered in a run that is resumed, also from a saved chat`, { skip }, async () => {
    const { convertToModelMessages, generateText, jsonSchema, stepCountIs, isStepCount, tool } = await import(major.name);
    const { [major.mock]: Mock } = await import(major.test);
    const runs = [];
    const execute = async ({ path }) => (runs.push(path), `content of ${path}`);
    const inputSchema = jsonSchema({ type: "object", properties: { path: { type: "string" } } });
    const tools = { read: tool({ description: "Reads.", inputSchema, needsApproval: true, execute }) };
    const answers = [
      ["yes", "no"].map((id) => ({ type: "tool-call", toolCallId: id, toolName: "read", input: JSON.stringify({ path: id }) })),
      [{ type: "text", text: "done" }],
      [{ type: "text", text: "again" }],
    ];
    const prompts = [];
    const model = new Mock({
      doGenerate: async ({ prompt }) => {
        prompts.push(prompt);
        const content = answers.shift();
        return { content, finishReason: { unified: content.length > 1 ? "tool-calls" : "stop", raw: "r" }, usage, warnings: [] };
      },
    });
    const run = (messages) => {
      const fit = prepareStep({ maxTokens: 10_000, counter: "approx" });
      return generateText({ model, tools, messages, stopWhen: (stepCountIs ?? isStepCount)(5), prepareStep: fit });
    };
    const messagesOf = (result) => result.responseMessages ?? result.response.messages;
    const question = { role: "user", content: "go" };
    const asked = await run([question]);
    const requests = asked.content.filter(({ type }) => type === "tool-approval-request");
    assert.deepEqual([requests.length, runs], [2, []]);
    const respond = ({ approvalId, toolCall }) => ({ type: "tool-approval-response", approvalId, approved: toolCall.toolCallId === "yes" });
    const approved = [question, ...messagesOf(asked), { role: "tool", content: requests.map(respond) }];
    const resumed = await run(approved);
    assert.deepEqual([resumed.text, runs], ["done", ["yes"]]);
    // Each call has exactly one result, which is the one of the SDK.
    const resultsIn = (prompt) => prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
    const outputs = (prompt) => Object.fromEntries(resultsIn(prompt).map(({ toolCallId, output }) => [toolCallId, output.value ?? output.type]));
    const expected = { yes: "content of yes", no: "execution-denied" };
    checkPairs(prompts.at(-1));
    assert.deepEqual(outputs(prompts.at(-1)), expected);
    // A later run of the same history.
    assert.equal((await run([...approved, ...messagesOf(resumed), { role: "user", content: "and?" }])).text, "again");
    checkPairs(prompts.at(-1));
    assert.deepEqual(outputs(prompts.at(-1)), expected);

    // The user interface answers the requests, and the chat is saved and loaded in between.
    answers.push([{ type: "text", text: "saved" }]);
    const chats = await recto.open("memory:");
    const chat = await chats.chat("c");
    const part = ({ approvalId, toolCall: { toolCallId } }) => {
      const approval = { id: approvalId, approved: toolCallId === "yes" };
      return { type: "tool-read", toolCallId, state: "approval-responded", input: { path: toolCallId }, approval };
    };
    const shown = [
      { id: "q", role: "user", parts: [{ type: "text", text: "go" }] },
      { id: "a", role: "assistant", parts: [{ type: "step-start" }, ...requests.map(part)] },
    ];
    await chat.save(shown);
    const loaded = await (await chats.chat("c")).load();
    assert.deepEqual(loaded, shown);
    assert.equal((await run(await convertToModelMessages(loaded))).text, "saved");
    checkPairs(prompts.at(-1));
    assert.deepEqual([outputs(prompts.at(-1)), runs], [expected, ["yes", "yes"]]);
    chats.close();
  });

  test(`${major.name}: an aborted stream leaves a chat that can be continued`, { skip }, async () => {
    const { convertToModelMessages, generateText, jsonSchema, streamText, tool } = await import(major.name);
    const { [major.mock]: Mock } = await import(major.test);
    const tools = { read: tool({ description: "Reads.", inputSchema: jsonSchema({ type: "object" }) }) };
    const abort = new AbortController();
    const chunks = [
      { type: "stream-start", warnings: [] },
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "I look." },
      { type: "tool-call", toolCallId: "c1", toolName: "read", input: '{"path":"f"}' },
      { type: "tool-input-start", id: "c2", toolName: "read" },
      { type: "tool-input-delta", id: "c2", delta: '{"pa' },
    ];
    const stream = new ReadableStream({
      async pull(to) {
        if (chunks.length > 0) return to.enqueue(chunks.shift());
        // The reader gets time to read the chunks, because an error discards the queued ones.
        await new Promise((resolve) => setTimeout(resolve, 200));
        abort.abort();
        to.error(new DOMException("aborted", "AbortError"));
      },
    });
    const talks = await recto.open("memory:");
    const chat = await talks.chat("c");
    const question = { id: "q", role: "user", parts: [{ type: "text", text: "go" }] };
    await chat.save([question]);
    const run = streamText({
      model: new Mock({ doStream: async () => ({ stream }) }),
      tools,
      messages: await convertToModelMessages(await chat.load()),
      prepareStep: chat.prepareStep({ maxTokens: 10_000, counter: "approx" }),
      abortSignal: abort.signal,
      onError: () => {},
    });
    let saved;
    const parts = run.toUIMessageStream({
      originalMessages: await chat.load(),
      generateMessageId: () => "a",
      onFinish: ({ messages }) => (saved = chat.save(messages)),
    });
    for await (const _ of parts);
    await saved;
    const loaded = await chat.load();
    assert.deepEqual(loaded.map(({ id }) => id), ["q", "a"]);
    assert(JSON.stringify(loaded[1]).includes("I look."));
    // The user continues: the call without a result does not end the chat.
    await chat.save([...loaded, { ...question, id: "q2" }]);
    const { model, prompts } = scripted(Mock, 0);
    const messages = await convertToModelMessages(await chat.load());
    const fit = chat.prepareStep({ maxTokens: 10_000, counter: "approx" });
    assert.equal((await generateText({ model, tools, messages, prepareStep: fit })).text, "done");
    checkPairs(prompts[0]);
    assert(JSON.stringify(prompts[0]).includes("I look."));
    talks.close();
  });
}

test("messages that need no repair are the caller's objects, also after another history", () => {
  const step = prepareStep({ maxTokens: 5000, counter: "approx" });
  const first = [{ role: "user", content: "a" }, { role: "assistant", content: [{ type: "reasoning", text: "hm" }] }];
  const result = step({ messages: first });
  assert(result.messages.every((message, at) => message === first[at]));
  const other = [{ role: "user", content: [{ type: "image", image: "x" }] }, { role: "assistant", content: [] }];
  assert.deepEqual(step({ messages: other }).messages, other);
  assert.throws(() => prepareStep({ maxTokens: 3, counter: "approx" })({ messages: first }), BudgetTooSmall);
});

test("an approval without its request is left out, and a result of the provider's call stays", () => {
  const fit = prepareStep({ maxTokens: 5000, counter: "approx" });
  const remote = { type: "tool-call", toolCallId: "r", toolName: "web", input: {}, providerExecuted: true };
  const denied = { type: "tool-result", toolCallId: "r", toolName: "web", output: { type: "execution-denied" } };
  const messages = [
    { role: "user", content: "go" },
    { role: "tool", content: [{ type: "tool-approval-response", approvalId: "unknown", approved: true }] },
    { role: "assistant", content: [remote, { type: "tool-approval-request", approvalId: "1", toolCallId: "r" }] },
    { role: "tool", content: [{ type: "tool-approval-response", approvalId: "1", approved: false }] },
    { role: "tool", content: [denied] },
  ];
  assert.deepEqual(fit({ messages }).messages, messages.toSpliced(1, 1));
});

test("a call that was approved and never ran is answered before the next message", () => {
  const fit = prepareStep({ maxTokens: 5000, counter: "approx" });
  const call = { type: "tool-call", toolCallId: "c", toolName: "read", input: {} };
  const messages = [
    { role: "user", content: "go" },
    { role: "assistant", content: [call, { type: "tool-approval-request", approvalId: "1", toolCallId: "c" }] },
    { role: "tool", content: [{ type: "tool-approval-response", approvalId: "1", approved: true }] },
    { role: "user", content: "and?" },
  ];
  const { messages: sent } = fit({ messages });
  assert.deepEqual(sent.toSpliced(3, 1), messages);
  assert.deepEqual([sent[3].role, sent[3].content[0].toolCallId], ["tool", "c"]);
});

test("a step that is repeated gets the same messages", () => {
  const call = (id) => [
    { role: "assistant", content: [{ type: "tool-call", toolCallId: id, toolName: "read", input: {} }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: id, toolName: "read", output: { type: "text", value: "word ".repeat(60) } }] },
  ];
  const lost = { role: "assistant", content: [{ type: "tool-call", toolCallId: "lost", toolName: "read", input: {} }] };
  // Version 6 gives all messages to each step, version 7 those of the last step and the new ones.
  for (const carries of [false, true]) {
    const cuts = [];
    const fit = prepareStep({ maxTokens: 600, targetTokens: 300, counter: "approx", onCut: (cut) => cuts.push(cut) });
    let history = [{ role: "user", content: "go" }, lost];
    for (let step = 0; step < 30; step++) {
      history = [...history, ...call(`c${step}`)];
      const first = fit({ messages: history }).messages;
      const count = cuts.length;
      assert.deepEqual(fit({ messages: [...history] }).messages, first, `step ${step}`);
      assert(cuts.length - count <= 1);
      if (carries) history = first;
    }
    assert(cuts.length > 2);
  }
});

test("wrong types are refused with the name of the field", async () => {
  const typeError = (field) => (error) => error instanceof TypeError && error.message.startsWith(`${field} must be`);
  assert.throws(() => prepareStep(), typeError("options"));
  assert.throws(() => prepareStep({}), typeError("maxTokens"));
  assert.throws(() => prepareStep({ maxTokens: "many" }), typeError("maxTokens"));
  assert.throws(() => prepareStep({ maxTokens: NaN }), { code: "invalid_operation", field: "maxTokens" });
  assert.throws(() => prepareStep({ maxTokens: 10, targetTokens: 0.5 }), { field: "targetTokens" });
  const step = prepareStep({ maxTokens: 100, counter: "approx" });
  assert.throws(() => step({}), typeError("step.messages"));
  assert.throws(() => step({ messages: [7] }), typeError("step.messages[0]"));
  const talks = await recto.open("memory:");
  await assert.rejects(talks.chat(7), typeError("id"));
  const chat = await talks.chat("c");
  await assert.rejects(chat.save("all"), typeError("messages"));
  await assert.rejects(chat.save([{ id: "1", role: "user" }]), typeError("messages[0].parts"));
  await assert.rejects(chat.save([{ role: "user", parts: [] }]), typeError("messages[0].id"));
  await assert.rejects(chat.save([{ id: "1", role: "robot", parts: [] }]), { name: "InvalidRequest" });
  assert.equal(await chat.conversation.version(), 0);
  talks.close();
});

test("a chat is saved by difference and every save can be read again", async () => {
  const talks = await recto.open("memory:");
  const chat = await talks.chat("user/42");
  assert.deepEqual(await chat.load(), []);
  const question = { id: "1", role: "user", parts: [{ type: "text", text: "hi" }], metadata: { at: 1 } };
  const answer = { id: "2", role: "assistant", parts: [] };
  assert.deepEqual((await chat.save([question, answer])).added, [0, 1]);
  assert.equal(await chat.save([question, answer]), undefined);
  const parts = [
    { type: "step-start" },
    { type: "reasoning", text: "hm", state: "done" },
    { type: "tool-read", toolCallId: "c", state: "input-streaming", input: undefined, rawInput: '{"pa' },
    { type: "file", mediaType: "image/png", url: "data:image/png;base64,AAAA" },
    { type: "text", text: "hello", state: "done" },
  ];
  const grown = { ...answer, parts };
  const saved = await chat.save([question, grown]);
  assert.deepEqual([saved.hidden, saved.added], [[1], [2]]);
  assert.deepEqual(await chat.load(), JSON.parse(JSON.stringify([question, grown])));
  // The user edits the question: what followed is hidden, and stays in earlier versions.
  const edited = { ...question, id: "3", parts: [{ type: "text", text: "hey" }] };
  await chat.save([edited]);
  assert.deepEqual(await chat.load(), [edited]);
  assert.deepEqual(await chat.load({ at: 1 }), [question, answer]);
  const again = await talks.chat("user/42");
  assert.equal((await again.load()).length, 1);
  await chat.conversation.undo();
  assert.equal((await again.load()).length, 2);
  talks.close();
});

test("any text is an id of a chat, and each chat has its own messages", async () => {
  const chats = await recto.open("memory:");
  const message = (at) => ({ id: "1", role: "user", parts: [{ type: "text", text: `chat ${at}` }] });
  for (const [at, id] of IDS.entries()) await (await chats.chat(id)).save([message(at)]);
  for (const [at, id] of IDS.entries()) assert.deepEqual(await (await chats.chat(id)).load(), [message(at)]);
  assert.equal((await chats.chat("user-42")).conversation.name, "chat/user-42");
  chats.close();
});

test("two writers of one chat both succeed", async () => {
  const talks = await recto.open("memory:");
  const [one, two] = [await talks.chat("c"), await talks.chat("c")];
  const message = (id) => ({ id, role: "user", parts: [{ type: "text", text: id }] });
  await Promise.all([one.save([message("a")]), two.save([message("a"), message("b")])]);
  assert((await one.load()).length >= 1);
  talks.close();
});
