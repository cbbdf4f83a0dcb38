import { listsOver } from "./lists.js";
import { native } from "./native.js";

/** Fits, repairs and counts lists of messages, without a store. */
export const { fit, repair, countTokens } = listsOver(native.compute);
