// An agent of the AI SDK with its own means and with Recto: node bench/frameworks.mjs TARGET PROVIDER
//
// `cargo xtask compare frameworks` runs it. TARGET is the target directory of cargo, PROVIDER the program
// `scripted_provider` of the crate `testserver`. The work is the same as in `python/bench/scenario.py`. It prints a
// list of JSON objects, one for each variant.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import "./build.mjs";

// After the build.
const { convertToModelMessages, jsonSchema, pruneMessages, stepCountIs, streamText, tool } = await import("ai");
const { recto } = await import("recto-context/ai-sdk");

const CALLS = 12;
const WINDOW = 12_000;
const BUDGET = 8_000;
const TARGET = 4_800;
const KEPT_MESSAGES = 20;
const INSTRUCTIONS = "You look for the cause of failures. Read files until you have found it.";
const QUESTIONS = [
  "Why does the checkout fail?",
  "Does it also fail for logged-in users?",
  "Since which release?",
  "Which service is slow?",
  "What did it log in June?",
  "What should we change?",
];
/** The turn, from 0, and the call in it, from 1, that is interrupted. */
const INTERRUPTED = { turn: 2, call: 5 };
const VARIANTS = ["nothing", "pruneMessages", "prepareStep of recto-context"];
/** The client of the provider for version 6 of the AI SDK. */
const CLIENT = "@ai-sdk/openai-compatible@2.0.87";

/** Chats as an application without Recto saves them: a file that is written again after each turn. */
class FileChat {
  constructor(file) {
    this.file = file;
  }
  async load() {
    return existsSync(this.file) ? JSON.parse(readFileSync(this.file, "utf8")) : [];
  }
  async save(messages) {
    writeFileSync(this.file, JSON.stringify(messages));
  }
}

const [target, provider] = [resolve(process.argv[2]), process.argv[3]];
const { createOpenAICompatible } = await import(pathToFileURL(installed()).href);
const server = spawn(provider, [String(CALLS), String(WINDOW)], { stdio: ["pipe", "pipe", "inherit"] });
const url = await new Promise((found) => server.stdout.once("data", (line) => found(line.toString().trim())));
const rows = [];
for (const [number, variant] of VARIANTS.entries()) {
  rows.push({ framework: "AI SDK 6", variant, ...(await run(variant, `${url}/ai-sdk-${number}`)) });
}
server.stdin.end();
console.log(JSON.stringify(rows));

/** Installs the client beside the package. Returns its main file. */
function installed() {
  const folder = join(target, "node", "compare");
  const manifest = JSON.stringify({ name: "compare", private: true, description: CLIENT });
  const file = join(folder, "package.json");
  if (!existsSync(join(folder, "node_modules")) || !existsSync(file) || !readFileSync(file, "utf8").includes(CLIENT)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, manifest);
    const args = ["install", CLIENT, "zod@4", "--no-audit", "--no-fund", "--prefer-offline"];
    execFileSync("npm", args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  }
  return createRequire(file).resolve("@ai-sdk/openai-compatible");
}

async function run(variant, url) {
  const folder = mkdtempSync(join(tmpdir(), "recto-"));
  const isRecto = variant === VARIANTS[2];
  const store = isRecto ? await recto.open(`sqlite:${folder}/recto.db`, { search: false }) : undefined;
  const chat = isRecto ? await store.chat("t") : new FileChat(join(folder, "chat.json"));
  const model = createOpenAICompatible({ name: "scripted", baseURL: `${url}/v1`, apiKey: "none" })("scripted");
  const means = {
    nothing: { convert: {}, prepareStep: undefined },
    pruneMessages: {
      convert: { ignoreIncompleteToolCalls: true },
      prepareStep: ({ messages }) => ({
        messages: pruneMessages({ messages, toolCalls: `before-last-${KEPT_MESSAGES}-messages`, emptyMessages: "remove" }),
      }),
    },
  };
  const figures = { answered: 0, results: 0, errors: {}, seconds: 0 };
  for (const [turn, question] of QUESTIONS.entries()) {
    await fetch(`${url}/turn`);
    const begin = process.cpuUsage();
    const abort = new AbortController();
    let calls = 0;
    const read = tool({
      description: "Reads a file.",
      inputSchema: jsonSchema({ type: "object", properties: { path: { type: "string" } }, required: ["path"] }),
      execute: async ({ path }, { abortSignal }) => {
        calls++;
        if (turn === INTERRUPTED.turn && calls === INTERRUPTED.call) {
          abort.abort(); // the user stops the answer
          abortSignal.throwIfAborted();
        }
        figures.results++;
        return text(path, figures.results);
      },
    });
    const history = [...(await chat.load()), { id: `q${turn}`, role: "user", parts: [{ type: "text", text: question }] }];
    await chat.save(history);
    const { convert, prepareStep } = isRecto
      ? { convert: {}, prepareStep: chat.prepareStep({ maxTokens: BUDGET, targetTokens: TARGET }) }
      : means[variant];
    let error;
    let result;
    try {
      result = streamText({
        model,
        system: INSTRUCTIONS,
        tools: { read },
        messages: await convertToModelMessages(history, convert),
        stopWhen: stepCountIs(100),
        maxRetries: 0,
        abortSignal: abort.signal,
        prepareStep,
        onError: (event) => (error = event.error),
      });
      let saved;
      const stream = result.toUIMessageStream({
        originalMessages: history,
        generateMessageId: () => `a${turn}`,
        onFinish: ({ messages }) => (saved = messages),
      });
      for await (const part of stream) if (part.type === "error") error ??= new Error(part.errorText);
      if (saved) await chat.save(saved);
    } catch (thrown) {
      error = thrown;
    }
    const { user, system } = process.cpuUsage(begin);
    figures.seconds += (user + system) / 1e6;
    if (error) {
      // A refusal of the provider is in its own figures.
      if (error.name !== "AI_APICallError") figures.errors[error.name] = (figures.errors[error.name] ?? 0) + 1;
    } else if (!abort.signal.aborted) {
      figures.answered++;
    }
  }
  const left = (await chat.load()).map(messagesIn).reduce((sum, count) => sum + count, 0);
  store?.close();
  const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  rmSync(folder, { recursive: true });
  const { refused, ...sent } = await (await fetch(`${url}/figures`)).json();
  const made = QUESTIONS.length + sent.accepted + figures.results;
  const { answered, errors, seconds } = figures;
  return { ...sent, refused: { ...refused, ...errors }, answered, questions: QUESTIONS.length, left, made, bytes, seconds };
}

/** The number of questions, calls, results and answers in a message of the user interface. */
function messagesIn({ parts }) {
  const of = (part) => (part.type === "text" ? 1 : part.type.startsWith("tool-") ? (part.output === undefined ? 1 : 2) : 0);
  return parts.map(of).reduce((sum, count) => sum + count, 0);
}

/** What the tool returns: as `Scenario.read` in `scenario.py`. */
function text(path, results) {
  const two = (number) => String(number).padStart(2, "0");
  const line = (at) =>
    `2026-06-${two(at)} 14:${two((at * 7 + results) % 60)}:31 WARN ${path}: request ` +
    `${results * 1000 + at} to payments took ${(at * 137) % 900} ms, retry ${at % 4}`;
  return Array.from({ length: 12 }, (_, at) => line(at + 1)).join("\n");
}
