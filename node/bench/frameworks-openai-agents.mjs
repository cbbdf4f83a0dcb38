// An agent of the OpenAI Agents SDK for JavaScript with a session in a file or in Recto.

import { join } from "node:path";

import { Store } from "recto-context";
import { RectoSession } from "recto-context/openai-agents";

import { BUDGET, FileList, INSTRUCTIONS, KEPT_MESSAGES, TARGET } from "./scenario.mjs";

export const openaiAgents = {
  name: "OpenAI Agents SDK, JavaScript",
  variants: ["nothing", "sessionInputCallback", "RectoSession, fit"],
  run,
};

/** A session as an application stores it that has no database. */
class FileSession {
  #items;

  constructor(file) {
    this.#items = new FileList(file);
  }

  async getSessionId() {
    return "s";
  }

  async getItems(limit) {
    const items = await this.#items.load();
    return limit === undefined ? items : items.slice(Math.max(items.length - limit, 0));
  }

  async addItems(items) {
    await this.#items.save([...(await this.#items.load()), ...items]);
  }

  async popItem() {
    const items = await this.#items.load();
    const last = items.pop();
    await this.#items.save(items);
    return last;
  }

  async clearSession() {
    await this.#items.save([]);
  }
}

async function run(variant, scenario, folder, { agents, agentsOpenai, OpenAI }) {
  agents.setTracingDisabled(true);
  const client = new OpenAI({ baseURL: `${scenario.url}/v1`, apiKey: "none", maxRetries: 0 });
  const read = agents.tool({
    name: "read",
    description: "Reads a file.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"], additionalProperties: false },
    execute: async ({ path }) => scenario.read(path),
    errorFunction: null, // the exception of the tool ends the run
  });
  const model = new agentsOpenai.OpenAIResponsesModel(client, "scripted");
  const agent = new agents.Agent({ name: "investigator", instructions: INSTRUCTIONS, model, tools: [read] });
  const isRecto = variant.startsWith("Recto");
  const store = isRecto ? await Store.open(`sqlite:${folder}/recto.db`, { search: false }) : undefined;
  const session = isRecto ? await RectoSession.open("s", store) : new FileSession(join(folder, "session.json"));
  const options = { session, maxTurns: 100 };
  if (isRecto) options.callModelInputFilter = session.fit({ maxTokens: BUDGET, targetTokens: TARGET });
  if (variant === "sessionInputCallback") options.sessionInputCallback = (history, added) => [...history.slice(-KEPT_MESSAGES), ...added];
  const runner = new agents.Runner();
  await scenario.ask((question) => runner.run(agent, question, options));
  const left = (await session.getItems()).length;
  store?.close();
  return left;
}
