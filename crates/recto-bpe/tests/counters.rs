//! Compares the counts with those of `tiktoken-rs`, an independent implementation.
//! `RECTO_COUNTER_STRINGS` sets the number of random strings, `RECTO_COUNTER_SEED` the seed.

use std::time::{Duration, Instant};

use recto_bpe::Bpe;
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

/// Each encoding with the implementation that it is compared with.
fn counters() -> [(Bpe, &'static CoreBPE); 2] {
    [(Bpe::O200kBase, o200k_base_singleton()), (Bpe::Cl100kBase, cl100k_base_singleton())]
}

fn expected(oracle: &CoreBPE, text: &str) -> u64 {
    oracle.encode_ordinary(text).len() as u64
}

fn from_env(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")),
        Err(_) => default,
    }
}

#[test]
fn random_strings_have_the_counts_of_tiktoken_rs() {
    let seed = from_env("RECTO_COUNTER_SEED", 20_261_115);
    let strings = from_env("RECTO_COUNTER_STRINGS", 3_000);
    let mut texts = Texts(seed);
    for number in 0..strings {
        let text = texts.next();
        for (counter, oracle) in counters() {
            let (count, right) = (counter.count(&text), expected(oracle, &text));
            assert_eq!(count, right, "{counter:?}, seed {seed}, string {number}: {text:?}");
        }
    }
}

#[test]
fn edge_cases_have_the_counts_of_tiktoken_rs() {
    let whole = [
        "",
        " ",
        "\0",
        "\u{feff}",
        "\u{fffd}",
        "\u{10ffff}",
        "\n",
        "\r\n",
        "\n\n\n \n\t\n",
        "a\r\nb\r\n\r\nc\r",
        "   indented\n\t\tdeeper   \n",
        "trailing   ",
        "\u{a0}\u{a0}x \u{a0}! \u{3000}\u{3000}中 \u{2003}1 \u{85}\u{2028}\u{2029}",
        "版本一旦写入，便不再改变。「視図」はその投影です。한국어도 됩니다.",
        "👩‍👩‍👧‍👦👍🏽🏳️‍🌈🇫🇷 ☺︎☺️ 1️⃣",
        "e\u{301}te\u{301} Z\u{351}\u{36b}\u{343}algo \u{301}\u{301} नमस्ते สวัสดี",
        "I'm you're HE'S we'LL they'Ve I'd don't 'tis rock'n'roll ''s 'ſ",
        "0 12 123 1234 1234567890 3.14159 1e-9 ½ ² Ⅷ ١٢٣٤ １２３４",
        "fn main() {\n    let x: Vec<_> = (0..10).map(|i| i * 2).collect();\n}\n",
        "{\"a\":[1,2,{\"b\":null}],\"path\":\"C:\\\\x\\\\y\"} </div><!-- -->\n//\n/\n",
        "<|endoftext|> <|im_start|>system<|im_end|><|fim_prefix|><|endofprompt|>",
        "abc \u{202e}def\u{202c} שלום مرحبا \u{200f}\u{200b}\u{2066}x\u{2069}",
        "CamelCaseHTTPServer iPhone XMLHttpRequest ǅungla ʰª",
        "---===***___///\\\\\\...!!!???\n\n",
    ];
    let repeated = [" ", "\n", "a", "A", "1", "=", "/", "😀", "中", "\u{a0}", "\t ", "\u{a0}! "]
        .map(|unit| unit.repeat(3_000));
    let texts = whole.into_iter().chain(repeated.iter().map(String::as_str));
    for text in texts {
        for (counter, oracle) in counters() {
            assert_eq!(counter.count(text), expected(oracle, text), "{counter:?} {text:?}");
        }
    }
}

#[test]
fn the_text_of_a_special_token_is_ordinary_text() {
    for (counter, _) in counters() {
        assert!(counter.count("<|endoftext|>") > 1, "{counter:?}");
    }
}

#[test]
fn the_count_of_a_large_text_without_long_pieces_is_exact() {
    let mut texts = Texts(7);
    let mut text = String::new();
    while text.len() < 80_000 {
        text.push_str(&texts.next());
    }
    for (counter, oracle) in counters() {
        assert_eq!(counter.count(&text), expected(oracle, &text), "{counter:?}");
    }
}

#[test]
fn the_count_of_a_long_word_differs_by_at_most_two_tokens_per_cut() {
    // Most units do not divide 32 KiB, so that a cut falls inside a unit. The oracle takes quadratic
    // time, so the words are not longer.
    for unit in ["abc", "hello", "ACGTTGCAAC", "中文字", "👍🏽", " \t", "=-"] {
        let text = unit.repeat(100_000 / unit.len());
        let cuts = text.len() as u64 / (32 * 1024);
        for (counter, oracle) in counters() {
            let (count, right) = (counter.count(&text), expected(oracle, &text));
            assert!(
                count.abs_diff(right) <= 2 * cuts,
                "{counter:?} {unit:?}: {count}, not {right}"
            );
        }
    }
}

#[test]
fn the_time_to_count_spaces_outside_ascii_is_linear() {
    // For 32 times the text, `tiktoken` 4.1.2 takes 1,000 times as long. The limit is far from both,
    // because the machine may be busy.
    for unit in ["\u{a0}! ", "\u{3000}\u{301}", "\u{2003}1"] {
        for counter in [Bpe::O200kBase, Bpe::Cl100kBase] {
            let (small, large) = (unit.repeat(2_000), unit.repeat(64_000));
            let ratio = shortest(counter, &large).div_duration_f64(shortest(counter, &small));
            assert!(ratio < 300.0, "{counter:?} {unit:?}: {ratio:.0} times as long");
        }
    }
}

fn shortest(counter: Bpe, text: &str) -> Duration {
    let run = |_| {
        let start = Instant::now();
        assert!(counter.count(text) > 0);
        start.elapsed()
    };
    (0..4).map(run).min().expect("four runs")
}

#[test]
fn threads_share_a_counter() {
    let counter = Bpe::named("o200k_base").expect("it is an encoding of this crate");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(counter.count("hello world"), 2));
        }
    });
}

/// A seeded stream of strings, from plain words to arbitrary Unicode.
struct Texts(u64);

impl Texts {
    fn next(&mut self) -> String {
        // One in 250 has the size of a page.
        let parts = if self.below(250) == 0 { 500 } else { self.below(24) };
        let narrow = self.below(3) == 0;
        let kind = self.below(KINDS);
        let mut text = String::new();
        for _ in 0..parts {
            let kind = if narrow { kind } else { self.below(KINDS) };
            self.push(kind, &mut text);
        }
        text
    }

    fn push(&mut self, kind: u64, text: &mut String) {
        match kind {
            0 | 1 => text.push_str(self.pick(&WORDS)),
            2 => text.push(self.between(' ', '~')),
            3 => text.push(self.between('\0', '\u{a0}')),
            4 => text.push_str(self.pick(&SPACES)),
            5 => text.push(self.between('\u{a0}', '\u{24f}')),
            6 => text.push(self.between('\u{300}', '\u{36f}')),
            7 => text.push(self.between('\u{370}', '\u{1fff}')),
            8 => text.push(self.between('\u{2000}', '\u{2fff}')),
            9 => text.push(self.between('\u{3000}', '\u{ffff}')),
            10 => text.push(self.between('\u{1f000}', '\u{1faff}')),
            11 => text.push_str(&self.below(100_000).to_string()),
            12 => text.push_str(&self.pick(&WORDS).repeat(self.below(40) as usize)),
            _ => text.push(self.between('\0', char::MAX)),
        }
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    fn between(&mut self, first: char, last: char) -> char {
        let code = first as u64 + self.below(last as u64 - first as u64 + 1);
        char::from_u32(code as u32).unwrap_or('\u{fffd}')
    }

    fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }
}

const KINDS: u64 = 14;

const SPACES: [&str; 14] = [
    " ", "  ", "    ", "\n", "\n\n", "\r\n", "\r", "\t", "\u{a0}", "\u{3000}", "\u{2003}",
    "\u{85}", "\u{b}", "\u{2028}",
];

const WORDS: [&str; 36] = [
    "the",
    " model",
    " reads",
    "Recto",
    " view",
    "ROLLBACK",
    "HttpServer",
    "naïve",
    " straße",
    "ΣΊΣΥΦΟΣ",
    "данные",
    "日本語",
    "版本",
    "한국어",
    "नमस्ते",
    "สวัสดี",
    "مرحبا",
    "שלום",
    "'s",
    "'T",
    "'re",
    "'LL",
    "'",
    "fn ",
    "()",
    " {\n",
    "\n}",
    "=>",
    "//",
    "/",
    "…",
    "👩‍👧",
    "🇫🇷",
    "👍🏽",
    "<|endoftext|>",
    "ǅ",
];
