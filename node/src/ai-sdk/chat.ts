import { isDeepStrictEqual } from "node:util";

import { asList, asObject, asText } from "../checks.js";
import { type Conversation } from "../conversation.js";
import { VersionConflict } from "../errors.js";
import { encode } from "../json.js";
import { conversationName } from "../names.js";
import { Store } from "../store.js";
import type { Entry, Message, Operation, Outcome, Settings } from "../types.js";
import { prepareStep, type PrepareStepOptions } from "./prepare-step.js";

/** A message of the user interface, as far as this package reads it. */
export interface UIMessage {
  id: string;
  role: "system" | "user" | "assistant";
  parts: any[];
}

/** Chats in a store. */
export class ChatStore {
  readonly store: Store;

  constructor(store: Store) {
    this.store = store;
  }

  /** The chat with an id, which is created if it does not exist. Any text is a valid id. */
  async chat<M extends UIMessage = UIMessage>(id: string, settings: Settings = {}): Promise<Chat<M>> {
    asText(id, "id");
    return new Chat<M>(id, await this.store.conversationOrCreate(conversationName("chat/", id), settings));
  }

  close(): void {
    this.store.close();
  }
}

/** Maximum attempts of `save` after version conflicts. */
const MAX_ATTEMPTS = 8;

/** A chat. Every `save` is a version, so an edited or regenerated answer can be restored. */
export class Chat<M extends UIMessage = UIMessage> {
  readonly id: string;
  /** The conversation, with all versions of the chat. */
  readonly conversation: Conversation;

  constructor(id: string, conversation: Conversation) {
    this.id = id;
    this.conversation = conversation;
  }

  /** The messages, as they were saved. */
  async load({ at }: { at?: number } = {}): Promise<M[]> {
    const messages = await this.conversation.messages(at === undefined ? {} : { at });
    return messages.map((message) => fromRecto(message) as M);
  }

  /**
   * Saves the messages of the chat. Only what differs is written: new messages are appended, a message with the
   * same id is replaced, and messages that are missing are hidden. Returns `undefined` if nothing differs.
   */
  async save(messages: readonly M[]): Promise<Outcome | undefined> {
    const given = asList(messages, "messages").map((message, at) => toRecto(message, `messages[${at}]`));
    for (let attempt = 1; ; attempt++) {
      const { version, messages: stored } = await this.conversation.request<{ version: number; messages: Entry[] }>({
        show: true,
      });
      const operations = changes(stored, given);
      if (operations.length === 0) return undefined;
      try {
        return await this.conversation.apply(operations, { expectedVersion: version });
      } catch (error) {
        if (!(error instanceof VersionConflict) || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** `prepareStep` for a run of this chat. */
  prepareStep(options: PrepareStepOptions): ReturnType<typeof prepareStep> {
    return prepareStep(options);
  }
}

/** The operations that turn the stored messages into the given ones. */
function changes(stored: readonly Entry[], messages: readonly Message[]): Operation[] {
  const operations: Operation[] = [];
  let at = 0;
  for (; at < stored.length && at < messages.length; at++) {
    const before = stored[at]!.message;
    const now = messages[at]!;
    if (isDeepStrictEqual(before, now)) continue;
    if (before.id !== now.id) break;
    operations.push({ operation: "REPLACE", index: at, message: now });
  }
  const gone = stored.slice(at).map((entry) => entry.index);
  if (gone.length > 0) operations.push({ operation: "DELETE", indices: gone });
  if (at < messages.length) operations.push({ operation: "APPEND", messages: messages.slice(at) });
  return operations;
}

/** The parts are the content. A part of a type that Recto does not know is kept as it is. */
function toRecto(given: UIMessage, name: string): Message {
  const { id, role, parts, ...ui } = asObject(given, name);
  asText(id, `${name}.id`);
  const content = asList(parts, `${name}.parts`).length > 0 ? parts : [EMPTY];
  const message: Message = { role, content, id };
  if (Object.keys(ui).length > 0) message["ui"] = ui;
  // What is compared with stored messages must have passed through JSON too.
  return JSON.parse(encode(message));
}

const EMPTY = { type: "empty" };

function fromRecto({ role, content, id, ui }: Message): UIMessage {
  const parts = Array.isArray(content) ? content : [{ type: "text", text: content }];
  const isEmpty = parts.length === 1 && parts[0]!.type === "empty";
  return { id: id!, role: role as UIMessage["role"], ...ui, parts: isEmpty ? [] : parts };
}
