// A checkpointer that several processes share: each checkpoint is a file in a folder.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";

export class FileSaver extends BaseCheckpointSaver {
  constructor(folder) {
    super();
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  async getTuple(config) {
    const id = config.configurable.checkpoint_id ?? this.#ids().at(-1);
    const file = join(this.folder, `${id}.json`);
    return id !== undefined && existsSync(file) ? this.#read(config, id) : undefined;
  }

  async *list(config) {
    for (const id of this.#ids().reverse()) yield await this.#read(config, id);
  }

  async put(config, checkpoint, metadata) {
    const parent = config.configurable.checkpoint_id;
    const [, bytes] = await this.serde.dumpsTyped({ checkpoint, metadata, parent });
    const file = join(this.folder, `${checkpoint.id}.json`);
    // A rename is atomic: a reader finds the whole checkpoint or none.
    writeFileSync(`${file}.new`, bytes);
    renameSync(`${file}.new`, file);
    return { configurable: { thread_id: config.configurable.thread_id, checkpoint_ns: "", checkpoint_id: checkpoint.id } };
  }

  async putWrites() {}

  async deleteThread() {}

  /** Ids sort by time. */
  #ids() {
    return readdirSync(this.folder).filter((file) => file.endsWith(".json")).map((file) => file.slice(0, -5)).sort();
  }

  async #read(config, id) {
    const text = readFileSync(join(this.folder, `${id}.json`), "utf8");
    const { checkpoint, metadata, parent } = await this.serde.loadsTyped("json", text);
    const at = (checkpoint_id) => ({ configurable: { ...config.configurable, checkpoint_ns: "", checkpoint_id } });
    return { config: at(id), checkpoint, metadata, pendingWrites: [], ...(parent && { parentConfig: at(parent) }) };
  }
}
