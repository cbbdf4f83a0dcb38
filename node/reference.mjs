// Writes docs/node-api.md from the types of the built package.
//
//   node reference.mjs            writes the page
//   node reference.mjs --check    fails if the page differs

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import ts from "typescript";

const here = dirname(fileURLToPath(import.meta.url));
const page = join(here, "../docs/node-api.md");

/** The entry points, and the file with the types of each. */
const ENTRIES = {
  "recto-context": "dist/index.d.ts",
  "recto-context/ai-sdk": "dist/ai-sdk/index.d.ts",
  "recto-context/langchain": "dist/langchain/index.d.ts",
  "recto-context/langgraph": "dist/langgraph/index.d.ts",
  "recto-context/openai-agents": "dist/openai-agents/index.d.ts",
  "recto-context/message-array": "dist/message-array/index.d.ts",
  "recto-context/wasm": "dist/wasm/wasm/index.d.ts",
};

/** The order of a section. */
const KINDS = [
  ts.SyntaxKind.ClassDeclaration,
  ts.SyntaxKind.FunctionDeclaration,
  ts.SyntaxKind.VariableDeclaration,
  ts.SyntaxKind.InterfaceDeclaration,
  ts.SyntaxKind.TypeAliasDeclaration,
];

const files = Object.values(ENTRIES).map((file) => join(here, file));
const options = { target: ts.ScriptTarget.ES2022, moduleResolution: ts.ModuleResolutionKind.Bundler, skipLibCheck: true };
const program = ts.createProgram(files, { ...options, module: ts.ModuleKind.ESNext, types: [] });
const checker = program.getTypeChecker();

/** The entry point that has described a declaration. */
const described = new Map();

const sections = Object.entries(ENTRIES).map(([name, file]) => entry(name, program.getSourceFile(join(here, file))));
const text = `# API of the Node package

Generated from the types of the package by \`node reference.mjs\` in \`node/\`. [node.md](node.md) is the guide.

${sections.join("\n\n")}
`;

if (!process.argv.includes("--check")) {
  writeFileSync(page, text);
} else if (!existsSync(page) || readFileSync(page, "utf8") !== text) {
  console.error("docs/node-api.md differs from the types: run `node reference.mjs` in node/");
  process.exitCode = 1;
}

/** The section of an entry point. A name that an earlier one has described is only listed. */
function entry(name, source) {
  const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(source)).map(resolved);
  const keyOf = (symbol) => symbol.declarations[0].getText() + symbol.name;
  const again = symbols.filter((symbol) => described.has(keyOf(symbol)));
  const here = symbols.filter((symbol) => !described.has(keyOf(symbol)));
  for (const symbol of here) described.set(keyOf(symbol), name);
  const parts = [`## ${name}`];
  const about = moduleComment(source);
  if (about) parts.push(about);
  for (const kind of KINDS) {
    const found = here.filter((symbol) => symbol.declarations[0].kind === kind);
    parts.push(...found.sort((a, b) => a.name.localeCompare(b.name, "en")).map((symbol) => item(symbol)));
  }
  if (again.length > 0) {
    const names = again.map((symbol) => `\`${symbol.name}\``).sort();
    parts.push(`Also exported, as in \`${described.get(keyOf(again[0]))}\`: ${names.join(", ")}.`);
  }
  return parts.join("\n\n");
}

function resolved(symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function item(symbol) {
  const [declaration] = symbol.declarations;
  const about = comment(symbol);
  const parts = [];
  if (ts.isClassDeclaration(declaration)) {
    const base = heritage(declaration);
    parts.push(`### class ${symbol.name}${base}`, about, members(declaration, symbol.name));
  } else if (ts.isInterfaceDeclaration(declaration)) {
    parts.push(`### interface ${symbol.name}${heritage(declaration)}`, about, members(declaration, ""));
  } else if (ts.isFunctionDeclaration(declaration)) {
    const signatures = symbol.declarations.map((one) => flat(one.getText().replace(/^export declare function /, "")));
    parts.push(`### ${symbol.name}`, code(signatures), about);
  } else if (ts.isVariableDeclaration(declaration)) {
    parts.push(`### ${symbol.name}`, about, literalMembers(declaration, symbol.name));
  } else {
    parts.push(`### type ${symbol.name}`, about, code([declaration.getText().replace(/^export (declare )?/, "").replaceAll(/\bt\./g, "")]));
  }
  return parts.filter(Boolean).join("\n\n");
}

function heritage(declaration) {
  const clauses = declaration.heritageClauses ?? [];
  return clauses.map((clause) => ` ${clause.getText()}`).join("");
}

/** The public members, one line each. */
function members(declaration, owner) {
  const lines = declaration.members.filter(isPublic).map((member) => {
    const { isStatic, text } = signature(member, owner);
    const about = memberComment(member);
    return `- \`${isStatic ? `${owner}.` : ""}${text}\`${about ? `: ${about}` : ""}`;
  });
  return lines.join("\n");
}

function literalMembers(declaration, owner) {
  if (!declaration.type || !ts.isTypeLiteralNode(declaration.type)) return code([flat(declaration.getText())]);
  return declaration.type.members
    .map((member) => `- \`${owner}.${flat(member.getText())}\`: ${memberComment(member)}`)
    .join("\n");
}

function isPublic(member) {
  const flags = ts.getCombinedModifierFlags(member);
  if (flags & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) return false;
  if (member.name && ts.isPrivateIdentifier(member.name)) return false;
  return !ts.getJSDocTags(member).some((tag) => tag.tagName.text === "internal");
}

function signature(member, owner) {
  const isStatic = Boolean(ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Static);
  const bare = flat(member.getText()).replace(/^static /, "").replace(/^get (\w+)\(\)/, "readonly $1");
  return { isStatic, text: bare.replace(/^constructor\(/, `new ${owner}(`) };
}

/** A declaration on one line, without comments. */
function flat(text) {
  const bare = text.replaceAll(/\/\*.*?\*\//gs, "").replaceAll(/\s+/g, " ").replace(/;$/, "");
  return bare.replaceAll("; }", " }").replaceAll(/\bt\./g, "").trim();
}

function code(lines) {
  return `\`\`\`ts\n${lines.join("\n")}\n\`\`\``;
}

function comment(symbol) {
  return ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim();
}

function memberComment(member) {
  const symbol = member.name && checker.getSymbolAtLocation(member.name);
  const parts = symbol ? symbol.getDocumentationComment(checker) : [];
  // One of several overloads has a comment of its own.
  const own = ts.getJSDocCommentsAndTags(member).map((doc) => ts.getTextOfJSDocComment(doc.comment) ?? "").join(" ");
  return (own || ts.displayPartsToString(parts)).replaceAll(/\s+/g, " ").trim();
}

/** The comment at the start of an entry point. */
function moduleComment(source) {
  const [found] = ts.getLeadingCommentRanges(source.text, 0) ?? [];
  if (!found) return "";
  const inner = source.text.slice(found.pos, found.end).replace(/^\/\*\*?/, "").replace(/\*\/$/, "");
  return inner.split("\n").map((line) => line.replace(/^\s*\* ?/, "")).join("\n").trim();
}
