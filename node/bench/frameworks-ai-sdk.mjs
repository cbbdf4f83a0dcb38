// An agent of the AI SDK, version 6 or 7, with chats in a file or in Recto.

import { join } from "node:path";

import { recto } from "recto-context/ai-sdk";

import { BUDGET, FileList, INSTRUCTIONS, KEPT_MESSAGES, TARGET } from "./scenario.mjs";

const VARIANTS = ["nothing", "pruneMessages", "prepareStep of recto-context"];
/** For each version its package, and the client of the provider (`clients.mjs`). */
const VERSIONS = { 6: { sdk: "ai", client: "compatible6" }, 7: { sdk: "ai7", client: "compatible7" } };

export function aiSdk(version) {
  return { name: `AI SDK ${version}`, variants: VARIANTS, run: (...given) => run(version, ...given) };
}

async function run(version, variant, scenario, folder, clients) {
  const { sdk, client } = VERSIONS[version];
  const ai = await import(sdk);
  const isRecto = variant === VARIANTS[2];
  const store = isRecto ? await recto.open(`sqlite:${folder}/recto.db`, { search: false }) : undefined;
  const chat = isRecto ? await store.chat("t") : new FileList(join(folder, "chat.json"));
  const { createOpenAICompatible } = clients[client];
  const model = createOpenAICompatible({ name: "scripted", baseURL: `${scenario.url}/v1`, apiKey: "none" })("scripted");
  const prune = ({ messages }) => ({
    messages: ai.pruneMessages({ messages, toolCalls: `before-last-${KEPT_MESSAGES}-messages`, emptyMessages: "remove" }),
  });
  await scenario.ask(async (question, turn) => {
    const abort = new AbortController();
    const read = ai.tool({
      description: "Reads a file.",
      inputSchema: ai.jsonSchema({ type: "object", properties: { path: { type: "string" } }, required: ["path"] }),
      // The user stops the answer.
      execute: async ({ path }, { abortSignal }) => scenario.read(path, () => (abort.abort(), abortSignal.throwIfAborted())),
    });
    const history = [...(await chat.load()), { id: `q${turn}`, role: "user", parts: [{ type: "text", text: question }] }];
    await chat.save(history);
    const convert = variant === "pruneMessages" ? { ignoreIncompleteToolCalls: true } : {};
    const means = {
      pruneMessages: prune,
      [VARIANTS[2]]: isRecto ? chat.prepareStep({ maxTokens: BUDGET, targetTokens: TARGET }) : undefined,
    };
    let error;
    const result = ai.streamText({
      model,
      [version === 6 ? "system" : "instructions"]: INSTRUCTIONS,
      tools: { read },
      messages: await ai.convertToModelMessages(history, convert),
      stopWhen: (ai.stepCountIs ?? ai.isStepCount)(100),
      maxRetries: 0,
      abortSignal: abort.signal,
      prepareStep: means[variant],
      onError: (event) => (error = event.error),
    });
    let saved;
    const options = {
      originalMessages: history,
      generateMessageId: () => `a${turn}`,
      [version === 6 ? "onFinish" : "onEnd"]: ({ messages }) => (saved = messages),
    };
    const stream = version === 6 ? result.toUIMessageStream(options) : ai.toUIMessageStream({ stream: result.stream, ...options });
    for await (const part of stream) if (part.type === "error") error ??= new Error(part.errorText);
    if (saved) await chat.save(saved);
    if (error) throw error;
  });
  const left = (await chat.load()).map(messagesIn).reduce((sum, count) => sum + count, 0);
  store?.close();
  return left;
}

/** The number of questions, calls, results and answers in a message of the user interface. */
function messagesIn({ parts }) {
  const of = (part) => (part.type === "text" ? 1 : part.type.startsWith("tool-") ? (part.output === undefined ? 1 : 2) : 0);
  return parts.map(of).reduce((sum, count) => sum + count, 0);
}
