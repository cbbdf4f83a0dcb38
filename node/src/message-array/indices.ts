import { RectoError } from "../errors.js";
import type { ConversationManager } from "./conversation-manager.js";
import type { LLMMessageRole, MessageMarkMap } from "./types.js";

const ROLES: readonly LLMMessageRole[] = ["system", "user", "assistant", "tool"];

/** Indices of messages by role: the present ones of a conversation, or those of a list without a conversation. */
export class TypeIndexManager {
  readonly #own = new Map<LLMMessageRole, number[]>();
  readonly #source: (() => MessageMarkMap) | undefined;

  /** Without `source`, the list is independent of a conversation and empty. `ConversationManager` passes its mark map. */
  constructor(source?: () => MessageMarkMap) {
    this.#source = source;
  }

  getIndicesByRole(role: LLMMessageRole): number[] {
    return [...(this.#source ? (this.#source().typeIndices[role] ?? []) : (this.#own.get(role) ?? []))];
  }

  getRecentIndicesByRole(role: LLMMessageRole, n: number): number[] {
    // slice(-0) would return all.
    return n > 0 ? this.getIndicesByRole(role).slice(-n) : [];
  }

  getRangeIndicesByRole(role: LLMMessageRole, start: number, end: number): number[] {
    return this.getIndicesByRole(role).slice(start, end);
  }

  getAllTypeIndices(): Map<LLMMessageRole, number[]> {
    if (!this.#source) return new Map([...this.#own].map(([role, indices]) => [role, [...indices]]));
    const { typeIndices } = this.#source();
    return new Map(ROLES.map((role) => [role, typeIndices[role]]));
  }

  addIndex(role: LLMMessageRole, index: number): void {
    this.#checkOwn("addMessage");
    const indices = this.#own.get(role);
    if (indices) indices.push(index);
    else this.#own.set(role, [index]);
  }

  removeIndices(indices: number[]): void {
    this.#checkOwn("markCompressed");
    const removed = new Set(indices);
    for (const [role, kept] of this.#own) this.#own.set(role, kept.filter((index) => !removed.has(index)));
  }

  /** A list with the present indices that is independent of a conversation. */
  clone(): TypeIndexManager {
    const copy = new TypeIndexManager();
    for (const [role, indices] of this.getAllTypeIndices()) copy.#own.set(role, indices);
    return copy;
  }

  reset(): void {
    this.#checkOwn("clearMessages");
    this.#own.clear();
  }

  #checkOwn(instead: string): void {
    if (!this.#source) return;
    const message = `the indices of a conversation follow its messages; use ${instead} of the conversation, or a clone`;
    throw new RectoError({ code: "invalid_operation", message });
  }
}

/** The visible indices and the batches of a conversation. */
export class MessageIndexManager {
  readonly #conversation: ConversationManager;
  /** The version that `setOriginalIndices` or `reset` made, which has opened a batch. */
  #arranged: number | undefined;

  constructor(conversation: ConversationManager) {
    this.#conversation = conversation;
  }

  getMarkMap(): MessageMarkMap {
    return this.#conversation.getMarkMap();
  }

  /** Makes the view exactly these messages, in this order, in a new batch. */
  setOriginalIndices(indices: number[]): void {
    this.#arranged = this.#conversation.apply({ operation: "ARRANGE", indices }).version;
  }

  /** Empties the view. All messages stay in the log. Refused while a pinned message is visible. */
  reset(): void {
    this.setOriginalIndices([]);
  }

  /** Opens a batch without the messages below the boundary. Pinned messages stay visible. */
  startNewBatch(boundaryIndex: number): void {
    this.openBatch({ operation: "BATCH_START", boundary: boundaryIndex });
  }

  /**
   * Opens a batch. Directly after `setOriginalIndices` or `reset`, which have opened one already, it opens another
   * one only if the boundary or the tools change the view: the code of the founding documents calls both.
   */
  openBatch(operation: { operation: "BATCH_START"; boundary: number; withTools?: boolean }): void {
    if (this.#arranged !== undefined && this.#arranged === this.#conversation.currentVersion()) {
      this.#arranged = undefined;
      const { hidden, shown, added } = this.#conversation.apply(operation, { dryRun: true });
      if (hidden.length + shown.length + added.length === 0) return;
    }
    this.#conversation.apply(operation);
  }

  rollbackToBatch(targetBatch: number): void {
    this.#conversation.apply({ operation: "ROLLBACK", targetBatchIndex: targetBatch });
  }

  getCurrentBatchIndices(): number[] {
    return this.getMarkMap().originalIndices;
  }

  /** Shows a message at the end of the view, unless it is visible. */
  addIndex(index: number): void {
    const indices = this.getCurrentBatchIndices();
    if (!indices.includes(index)) this.setOriginalIndices([...indices, index]);
  }

  /** Hides messages. */
  markCompressed(indices: number[]): void {
    this.#conversation.apply({ operation: "compress", indices });
  }

  /** Whether a message is hidden. */
  isModified(originalIndex: number): boolean {
    const { totalMessages } = this.#conversation.getStats();
    return originalIndex >= 0 && originalIndex < totalMessages && !this.getCurrentBatchIndices().includes(originalIndex);
  }

  /** The position of a batch in `batchBoundaries`; -1 if the live path does not have the batch. */
  findBoundaryIndex(batch: number): number {
    return this.getMarkMap().boundaryToBatch.indexOf(batch);
  }

  checkConsistency(): boolean {
    return this.#conversation.checkConsistency();
  }
}
