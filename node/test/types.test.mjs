// The types of src/types.ts, compared with the JSON Schema of the requests and responses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import ts from "typescript";

import { schema } from "recto-context";

const SCHEMA = schema();
const RESPONSES = {
  op: "Outcome",
  setTools: "Outcome",
  append: "Appended",
  info: "Info",
  diff: "Difference",
  stats: "Stats",
  render: "Rendered",
  state: "State",
  snapshot: "BatchSnapshot",
  tokens: "TokenShares",
  tokenCheck: "CheckedTokens",
  markMap: "MarkMap",
  settings: "ConversationSettings",
  prune: "Pruned",
  import: "Imported",
  export: "Exported",
  // Fields of a response: the type of each item of the list.
  "list.conversations": "ConversationInfo",
  "log.versions": "VersionInfo",
  "blame.history": "Blame",
  "ask.messages": "Entry",
  "show.messages": "Entry",
  "marks.marks": "MarkedEntries",
  "tools.tools": "Tool",
  "lint.findings": "Finding",
  "search.messages": "SearchHit",
  "erase.erased": "ErasedEntry",
};
/** Requests with the fields of a type. */
const REQUESTS = { "prune.prune": "Keep", "create.settings": "Settings" };

const file = fileURLToPath(new URL("../src/types.ts", import.meta.url));
const program = ts.createProgram([file], { strict: true, exactOptionalPropertyTypes: true, target: ts.ScriptTarget.ES2022, types: [] });
const checker = program.getTypeChecker();
const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
const typeNamed = (name) => checker.getDeclaredTypeOfSymbol(exported.find((symbol) => symbol.name === name));

/** A part of the schema without references, and without `null` beside it. */
function resolved(part) {
  for (; part.$ref !== undefined; ) part = part.$ref.replace("#/", "").split("/").reduce((found, key) => found[key], SCHEMA);
  const others = (part.anyOf ?? []).filter(({ type }) => type !== "null");
  return others.length === 1 ? resolved(others[0]) : part;
}

/** The fields of an object with their schemas, and the names of those that are always there. */
function fieldsOf(part) {
  const { properties = {}, required = [], allOf = [] } = resolved(part);
  const parts = allOf.map(fieldsOf);
  return {
    fields: Object.assign({}, properties, ...parts.map(({ fields }) => fields)),
    required: new Set([...required, ...parts.flatMap((one) => [...one.required])]),
  };
}

const KINDS = [
  ["string", ts.TypeFlags.StringLike],
  ["number", ts.TypeFlags.NumberLike],
  ["integer", ts.TypeFlags.NumberLike],
  ["boolean", ts.TypeFlags.BooleanLike],
];

/** Whether a part of the schema allows `null`. */
function allowsNull(part) {
  const isNull = ({ type }) => [type].flat().includes("null");
  return isNull(part) || (part.anyOf ?? []).some(isNull);
}

/**
 * Fails if a type has other fields than the schema, or if one of them is optional, `null` or of another type in only
 * one of them.
 */
function compare(part, type, path) {
  if (type.flags & ts.TypeFlags.Any) return;
  const members = type.isUnion() ? type.types : [type];
  const hasNull = members.some(({ flags }) => flags & ts.TypeFlags.Null);
  // A field that may be missing is described as one that may be `null`.
  if (!path.endsWith("?")) assert.equal(hasNull, allowsNull(part), `${path} may be null`);
  type = checker.getNonNullableType(type);
  const { type: kind, items } = resolved(part);
  const list = checker.getIndexTypeOfType(type, ts.IndexKind.Number);
  if (items !== undefined && list !== undefined) return compare(items, list, `${path}[]`);
  for (const [name, flags] of KINDS) {
    if (![kind].flat().includes(name)) continue;
    const members = type.isUnion() ? type.types : [type];
    assert(members.every((member) => member.flags & flags), `${path} is ${checker.typeToString(type)}, in the schema ${name}`);
    return;
  }
  const { fields, required } = fieldsOf(part);
  // A free object, such as a message.
  if (Object.keys(fields).length === 0 || checker.getIndexTypeOfType(type, ts.IndexKind.String)) return;
  const symbols = checker.getPropertiesOfType(type);
  assert.deepEqual(symbols.map(({ name }) => name).sort(), Object.keys(fields).sort(), path);
  const always = symbols.filter(({ flags }) => !(flags & ts.SymbolFlags.Optional)).map(({ name }) => name);
  assert.deepEqual(always.sort(), [...required].sort(), `fields of ${path} that are always there`);
  for (const symbol of symbols) {
    const mark = required.has(symbol.name) ? "" : "?";
    compare(fields[symbol.name], checker.getTypeOfSymbol(symbol), `${path}.${symbol.name}${mark}`);
  }
}

/** A request or response of the schema, or a field of it. */
function partOf(path, side) {
  const [name, field] = path.split(".");
  const row = SCHEMA.requests.find(({ names }) => names[0] === name);
  assert(row, `the schema has no request ${name}`);
  return field === undefined ? row[side] : fieldsOf(row[side]).fields[field];
}

for (const [path, name] of Object.entries(RESPONSES)) {
  test(`a response of ${path} has the fields of ${name}`, () => {
    const part = partOf(path, "response");
    compare(path.includes(".") ? resolved(part).items : part, typeNamed(name), name);
  });
}

for (const [path, name] of Object.entries(REQUESTS)) {
  test(`${name} has the fields of ${path}`, () => {
    const symbols = checker.getPropertiesOfType(typeNamed(name)).map((symbol) => symbol.name);
    // `compressionConfig` is another name for `compression`.
    const names = Object.keys(fieldsOf(partOf(path, "request")).fields).filter((name) => name !== "compressionConfig");
    assert.deepEqual(symbols.sort(), names.sort());
  });
}

test("types with names have all names of the schema", () => {
  for (const name of ["Provider", "Role", "CounterName"]) {
    const { types } = typeNamed(name);
    assert.deepEqual(types.map(({ value }) => value).sort(), [...SCHEMA.$defs[name].enum].sort(), name);
  }
});
