//! Random choices with integer arithmetic only, so that a seed gives the same result on every machine.

use serde_json::{Map, Value, json};

use super::text::{TECHNICAL, WORDS};

/// The generator `splitmix64`.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn between(&mut self, least: usize, most: usize) -> usize {
        least + (self.next_u64() % (most - least + 1) as u64) as usize
    }

    /// True in `percent` of 100 cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.between(0, 99) < percent
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.between(0, choices.len() - 1)]
    }

    /// One of the choices; the first ones are more frequent.
    fn skewed<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let (a, b) = (self.next_u64() >> 32, self.next_u64() >> 32);
        let scaled = ((a * b) >> 32) * choices.len() as u64;
        choices[(scaled >> 32) as usize]
    }

    pub(super) fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(b"0123456789abcdef"[self.between(0, 15)])).collect()
    }

    fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|digits| self.hex(digits)).join("-")
    }

    pub(super) fn time(&mut self) -> String {
        let (month, day) = (self.between(1, 12), self.between(1, 28));
        let (hour, minute) = (self.between(0, 23), self.between(0, 59));
        let (second, milli) = (self.between(0, 59), self.between(0, 999));
        format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }

    pub(super) fn technical(&mut self) -> &'static str {
        self.pick(&TECHNICAL)
    }

    pub(super) fn name(&mut self) -> String {
        let syllables = self.between(2, 4);
        let name: String = (0..syllables).map(|_| self.pick(&SYLLABLES)).collect();
        capital(&name)
    }

    pub(super) fn identifier(&mut self) -> String {
        let verb = self.pick(&VERBS);
        let nouns: Vec<&str> = (0..self.between(1, 2)).map(|_| self.technical()).collect();
        match self.chance(50) {
            true => format!("{verb}_{}", nouns.join("_")),
            false => nouns.iter().fold(verb.to_owned(), |name, noun| name + &capital(noun)),
        }
    }

    pub(super) fn path(&mut self) -> String {
        let folders: Vec<&str> = (0..self.between(1, 3)).map(|_| self.technical()).collect();
        let ending = self.pick(&["py", "rs", "ts", "json", "md"]);
        format!("src/{}.{ending}", folders.join("/"))
    }

    fn word(&mut self) -> String {
        match self.between(0, 999) {
            0..620 => self.skewed(&WORDS).to_owned(),
            620..930 => self.skewed(&TECHNICAL).to_owned(),
            930..960 => self.name(),
            960..975 => self.between(0, 99_999).to_string(),
            975..990 => format!("`{}`", self.identifier()),
            990..992 => self.pick(&FOREIGN).to_owned(),
            _ => self.pick(&["don't", "it's", "we'll", "can't", "I'm", "they've"]).to_owned(),
        }
    }

    pub(super) fn words(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }

    pub(super) fn sentence(&mut self) -> String {
        let count = self.between(6, 18);
        let comma = self.between(2, count * 3);
        let mut words: Vec<String> = (0..count).map(|_| self.word()).collect();
        if let Some(word) = words.get_mut(comma) {
            word.push(',');
        }
        let end = self.pick(&[".", ".", ".", ".", "?", "!", ":"]);
        format!("{}{end}", capital(&words.join(" ")))
    }

    /// An object like the inputs and results of tools.
    pub(super) fn object(&mut self, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for _ in 0..self.between(3, 7) {
            let key = self.technical().to_owned();
            match self.between(0, 99) {
                0..20 => object.insert(key + "_id", json!(self.uuid())),
                20..30 => object.insert(key + "_at", json!(self.time())),
                30..45 => object.insert(key, json!(self.between(0, 1_000_000))),
                45..55 => object.insert(key, json!(self.between(0, 999_999) as f64 / 1_000.0)),
                55..60 => object.insert(key, json!(self.chance(50))),
                60..70 => object.insert(key, json!(self.path())),
                70..80 if depth < 2 => object.insert(key, Value::Object(self.object(depth + 1))),
                _ => {
                    let count = self.between(2, 8);
                    object.insert(key, json!(self.words(count)))
                }
            };
        }
        object
    }
}

pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const VERBS: [&str; 20] = [
    "get", "set", "load", "save", "parse", "build", "check", "fetch", "update", "merge", "apply",
    "compute", "resolve", "render", "encode", "decode", "flush", "open", "close", "retry",
];

const SYLLABLES: [&str; 35] = [
    "ba", "be", "bo", "da", "de", "di", "ka", "ke", "ko", "la", "le", "lo", "ma", "me", "mi", "na",
    "ne", "no", "ra", "re", "ri", "sa", "se", "so", "ta", "te", "to", "va", "ve", "vi", "zo", "ny",
    "xu", "qi", "gr",
];

const FOREIGN: [&str; 10] =
    ["café", "naïve", "über", "→", "✓", "日本語", "данные", "🚀", "≥", "数据"];
