//! Texts of a given length: prose, code, JSON and logs.

use std::fmt::Write as _;

use super::random::Random;

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Prose,
    Code,
    Json,
    Logs,
}

impl Kind {
    /// Approximate number of bytes per hundred tokens.
    fn bytes_per_100_tokens(self) -> usize {
        match self {
            Kind::Prose => 485,
            Kind::Code => 383,
            Kind::Json => 253,
            Kind::Logs => 290,
        }
    }
}

impl Random {
    /// Text of about `tokens` tokens.
    pub(super) fn text(&mut self, kind: Kind, tokens: usize) -> String {
        let bytes = tokens * kind.bytes_per_100_tokens() / 100;
        let mut text = String::with_capacity(bytes + 512);
        while text.len() < bytes {
            match kind {
                Kind::Prose => self.paragraph(&mut text),
                Kind::Code => self.code_snippet(&mut text),
                Kind::Json => self.json_record(&mut text),
                Kind::Logs => self.log_line(&mut text),
            }
        }
        text.truncate(text.floor_char_boundary(bytes));
        text
    }

    fn paragraph(&mut self, text: &mut String) {
        if self.chance(20) {
            for _ in 0..self.between(2, 4) {
                let _ = writeln!(text, "- {}", self.sentence());
            }
        } else {
            let sentences: Vec<String> = (0..self.between(1, 4)).map(|_| self.sentence()).collect();
            let _ = writeln!(text, "{}", sentences.join(" "));
        }
        text.push('\n');
    }

    fn code_snippet(&mut self, text: &mut String) {
        let (name, other, noun) = (self.identifier(), self.identifier(), self.technical());
        let (second, sentence) = (self.technical(), self.sentence());
        let (number, limit) = (self.between(1, 900), self.between(1, 500));
        let _ = match self.between(0, 3) {
            0 => writeln!(
                text,
                "def {name}({noun}: str, limit: int = {limit}) -> dict:\n    \"\"\"{sentence}\"\"\"\n    \
                 result = {other}({noun})\n    if not result:\n        \
                 raise ValueError(f\"{second} {{{noun}}} not found\")\n    \
                 return {{\"{second}\": result[:limit], \"count\": len(result)}}\n"
            ),
            1 => writeln!(
                text,
                "pub fn {name}(&self, {noun}: &str) -> Result<Vec<u8>, Error> {{\n    \
                 let mut buffer = Vec::with_capacity({limit});\n    \
                 for item in self.{second}s.iter().filter(|x| x.{noun} != 0) {{\n        \
                 // {sentence}\n        {other}(item, &mut buffer)?;\n    }}\n    Ok(buffer)\n}}\n"
            ),
            2 => writeln!(
                text,
                "export async function {name}({noun}: string): Promise<{}[]> {{\n  \
                 const res = await {other}(`/api/v{}/${{{noun}}}`);\n  if (!res.ok) {{\n    \
                 throw new Error('{sentence}');\n  }}\n  \
                 return (await res.json()).map((x) => x.{second} ?? null);\n}}\n",
                self.name(),
                self.between(1, 3)
            ),
            _ => writeln!(
                text,
                "@@ -{number},{} +{},{} @@ {name}\n-    {noun} = {limit}\n\
                 +    {noun} = {other}({})  # {sentence}",
                self.between(3, 20),
                self.between(1, 900),
                self.between(3, 20),
                self.between(0, 100)
            ),
        };
    }

    fn json_record(&mut self, text: &mut String) {
        let object = self.object(0);
        let json = match self.chance(50) {
            true => serde_json::to_string_pretty(&object),
            false => serde_json::to_string(&object),
        };
        text.push_str(if text.is_empty() { "[" } else { ",\n" });
        text.push_str(&json.expect("plain data can be written"));
    }

    fn log_line(&mut self, text: &mut String) {
        let level = self.pick(&["INFO", "INFO", "DEBUG", "WARN", "ERROR"]);
        let (time, part, worker) = (self.time(), self.technical(), self.between(0, 31));
        let (path, line, sentence) = (self.path(), self.between(1, 900), self.sentence());
        let (id, took) = (self.hex(12), self.between(0, 9_000));
        let _ = writeln!(
            text,
            "{time} {level} [{part}-{worker}] {path}:{line} {sentence} id={id} took={took}ms"
        );
    }
}

/// Frequent words, the most frequent first.
pub(super) const WORDS: [&str; 496] = [
    "the", "of", "and", "to", "a", "in", "is", "it", "you", "that", "he", "was", "for", "on",
    "are", "with", "as", "his", "they", "be", "at", "one", "have", "this", "from", "or", "had",
    "by", "not", "but", "what", "some", "we", "can", "out", "other", "were", "all", "there",
    "when", "up", "use", "your", "how", "sentence", "an", "each", "she", "which", "do", "their",
    "time", "if", "will", "way", "about", "many", "then", "them", "write", "would", "like", "so",
    "these", "her", "long", "make", "thing", "see", "him", "two", "has", "look", "more", "day",
    "could", "go", "come", "did", "number", "sound", "no", "most", "people", "my", "over", "know",
    "water", "than", "call", "first", "who", "may", "down", "side", "been", "now", "find", "any",
    "new", "work", "part", "take", "get", "place", "made", "live", "where", "after", "back",
    "little", "only", "round", "man", "year", "came", "show", "every", "good", "me", "give", "our",
    "under", "name", "very", "through", "just", "form", "sentence", "great", "think", "say",
    "help", "low", "line", "differ", "turn", "cause", "much", "mean", "before", "move", "right",
    "boy", "old", "too", "same", "tell", "does", "set", "three", "want", "air", "well", "also",
    "play", "small", "end", "put", "home", "read", "hand", "port", "large", "spell", "add", "even",
    "land", "here", "must", "big", "high", "such", "follow", "act", "why", "ask", "men", "change",
    "went", "light", "kind", "off", "need", "house", "picture", "try", "us", "again", "animal",
    "point", "mother", "world", "near", "build", "self", "earth", "father", "head", "stand", "own",
    "page", "should", "country", "found", "answer", "school", "grow", "study", "still", "learn",
    "plant", "cover", "food", "sun", "four", "between", "state", "keep", "eye", "never", "last",
    "let", "thought", "city", "tree", "cross", "farm", "hard", "start", "might", "story", "saw",
    "far", "sea", "draw", "left", "late", "run", "while", "press", "close", "night", "real",
    "life", "few", "north", "open", "seem", "together", "next", "white", "children", "begin",
    "got", "walk", "example", "ease", "paper", "group", "always", "music", "those", "both", "mark",
    "often", "letter", "until", "mile", "river", "car", "feet", "care", "second", "book", "carry",
    "took", "science", "eat", "room", "friend", "began", "idea", "fish", "mountain", "stop",
    "once", "base", "hear", "horse", "cut", "sure", "watch", "color", "face", "wood", "main",
    "enough", "plain", "girl", "usual", "young", "ready", "above", "ever", "red", "list", "though",
    "feel", "talk", "bird", "soon", "body", "dog", "family", "direct", "pose", "leave", "song",
    "measure", "door", "product", "black", "short", "numeral", "class", "wind", "question",
    "happen", "complete", "ship", "area", "half", "rock", "order", "fire", "south", "problem",
    "piece", "told", "knew", "pass", "since", "top", "whole", "king", "space", "heard", "best",
    "hour", "better", "true", "during", "hundred", "five", "remember", "step", "early", "hold",
    "west", "ground", "interest", "reach", "fast", "verb", "sing", "listen", "six", "table",
    "travel", "less", "morning", "ten", "simple", "several", "vowel", "toward", "war", "lay",
    "against", "pattern", "slow", "center", "love", "person", "money", "serve", "appear", "road",
    "map", "rain", "rule", "govern", "pull", "cold", "notice", "voice", "unit", "power", "town",
    "fine", "certain", "fly", "fall", "lead", "cry", "dark", "machine", "note", "wait", "plan",
    "figure", "star", "box", "noun", "field", "rest", "correct", "able", "pound", "done", "beauty",
    "drive", "stood", "contain", "front", "teach", "week", "final", "gave", "green", "quick",
    "develop", "ocean", "warm", "free", "minute", "strong", "special", "mind", "behind", "clear",
    "tail", "produce", "fact", "street", "inch", "multiply", "nothing", "course", "stay", "wheel",
    "full", "force", "blue", "object", "decide", "surface", "deep", "moon", "island", "foot",
    "system", "busy", "test", "record", "boat", "common", "gold", "possible", "plane", "stead",
    "dry", "wonder", "laugh", "thousand", "ago", "ran", "check", "game", "shape", "equate", "hot",
    "miss", "brought", "heat", "snow", "tire", "bring", "yes", "distant", "fill", "east", "paint",
    "language", "among",
];

/// Technical words that are frequent in the messages of agents.
pub(super) const TECHNICAL: [&str; 191] = [
    "request",
    "response",
    "server",
    "client",
    "token",
    "budget",
    "message",
    "context",
    "window",
    "cache",
    "index",
    "commit",
    "branch",
    "rollback",
    "snapshot",
    "checkpoint",
    "version",
    "schema",
    "migration",
    "table",
    "column",
    "row",
    "query",
    "transaction",
    "lock",
    "thread",
    "process",
    "queue",
    "worker",
    "job",
    "retry",
    "timeout",
    "backoff",
    "error",
    "exception",
    "stack",
    "trace",
    "log",
    "metric",
    "span",
    "latency",
    "throughput",
    "memory",
    "heap",
    "buffer",
    "stream",
    "socket",
    "header",
    "payload",
    "body",
    "status",
    "code",
    "handler",
    "route",
    "endpoint",
    "service",
    "gateway",
    "proxy",
    "agent",
    "tool",
    "model",
    "prompt",
    "completion",
    "embedding",
    "vector",
    "document",
    "chunk",
    "parser",
    "lexer",
    "compiler",
    "runtime",
    "module",
    "package",
    "crate",
    "function",
    "method",
    "argument",
    "parameter",
    "return",
    "value",
    "type",
    "struct",
    "enum",
    "trait",
    "interface",
    "class",
    "instance",
    "pointer",
    "reference",
    "slice",
    "array",
    "list",
    "map",
    "set",
    "string",
    "integer",
    "float",
    "boolean",
    "null",
    "undefined",
    "async",
    "await",
    "future",
    "promise",
    "callback",
    "event",
    "listener",
    "emitter",
    "config",
    "option",
    "flag",
    "environment",
    "variable",
    "path",
    "file",
    "directory",
    "disk",
    "storage",
    "bucket",
    "object",
    "key",
    "secret",
    "session",
    "user",
    "account",
    "role",
    "permission",
    "policy",
    "audit",
    "billing",
    "invoice",
    "order",
    "cart",
    "product",
    "price",
    "currency",
    "customer",
    "address",
    "region",
    "cluster",
    "node",
    "pod",
    "container",
    "image",
    "volume",
    "network",
    "subnet",
    "firewall",
    "certificate",
    "domain",
    "host",
    "port",
    "test",
    "fixture",
    "assertion",
    "coverage",
    "benchmark",
    "profile",
    "sample",
    "histogram",
    "percentile",
    "median",
    "regression",
    "deploy",
    "release",
    "pipeline",
    "artifact",
    "build",
    "lint",
    "format",
    "refactor",
    "review",
    "merge",
    "conflict",
    "diff",
    "patch",
    "issue",
    "ticket",
    "priority",
    "sprint",
    "backlog",
    "feature",
    "dashboard",
    "report",
    "chart",
    "export",
    "import",
    "sync",
    "webhook",
    "scheduler",
    "cron",
];
