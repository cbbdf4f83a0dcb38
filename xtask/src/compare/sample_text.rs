//! Sample text for measurements: the kinds of text in an agent's context, generated from a seed.
//!
//! Prose, code, JSON, logs and some Chinese and Japanese, in pieces of about 2 KB. Words follow
//! Zipf's law, since a tokenizer that caches frequent words would look too fast or too slow on
//! words that are all equally likely. Only whole numbers are used, so a seed gives the same bytes
//! on every machine.

use std::fmt::Write as _;

use crate::seed::Random;

/// Minimum length of a piece, in bytes.
const PIECE: usize = 2_000;

/// At least `bytes` bytes of text, one JSON string per line.
pub(crate) fn json_lines(seed: u64, bytes: usize) -> String {
    let mut writer = Writer::new(seed);
    let mut lines = String::with_capacity(bytes + 2 * PIECE);
    while lines.len() < bytes {
        let piece = writer.piece();
        lines.push_str(&serde_json::Value::String(piece).to_string());
        lines.push('\n');
    }
    lines
}

struct Writer {
    random: Random,
    common: Zipf,
    names: Zipf,
    chinese: Zipf,
    japanese: Zipf,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            common: Zipf::new(WORDS),
            names: Zipf::new(NAMES),
            chinese: Zipf::new(CHINESE),
            japanese: Zipf::new(JAPANESE),
        }
    }

    /// One message: mostly prose and code, as conversations are.
    fn piece(&mut self) -> String {
        let line: fn(&mut Self, &mut String) = match self.random.below(100) {
            0..45 => Self::paragraph,
            45..75 => Self::function,
            75..85 => Self::record,
            85..93 => Self::log_line,
            _ => Self::east_asian,
        };
        let mut text = String::with_capacity(PIECE * 5 / 4);
        while text.len() < PIECE {
            line(self, &mut text);
        }
        text
    }

    fn word(&mut self) -> &'static str {
        self.common.choose(&mut self.random)
    }

    fn name(&mut self) -> &'static str {
        self.names.choose(&mut self.random)
    }

    /// `block_parser`.
    fn snake_case(&mut self) -> String {
        format!("{}_{}", self.name(), self.name())
    }

    /// `block_parser`, `BlockParser` or plain `block`.
    fn identifier(&mut self) -> String {
        match self.random.below(4) {
            0 => self.name().to_owned(),
            1 => format!("{}{}", capital(self.name()), capital(self.name())),
            _ => self.snake_case(),
        }
    }

    fn paragraph(&mut self, text: &mut String) {
        if self.random.below(8) == 0 {
            let _ = write!(text, "## {} {}\n\n", capital(self.word()), self.word());
        }
        for _ in 0..2 + self.random.below(5) {
            self.sentence(text);
        }
        text.push_str("\n\n");
    }

    fn sentence(&mut self, text: &mut String) {
        text.push_str(&capital(self.word()));
        for _ in 0..4 + self.random.below(16) {
            match self.random.below(40) {
                0 => text.push(','),
                1 => drop(write!(text, " {}", self.random.below(3_000))),
                2 => drop(write!(text, " `{}`", self.identifier())),
                3 => text.push_str(self.random.pick(&["'s", "; so", " – that is,", " (or not)"])),
                _ => {}
            }
            text.push(' ');
            text.push_str(self.word());
        }
        text.push_str(self.random.pick(&[". ", ". ", ". ", "? ", "! ", ": "]));
    }

    fn function(&mut self, text: &mut String) {
        if self.random.below(2) == 0 { self.rust(text) } else { self.python(text) }
    }

    fn rust(&mut self, text: &mut String) {
        let (name, argument) = (self.snake_case(), self.name());
        let kind = self.random.pick(&["u64", "&str", "Vec<u8>", "Option<usize>", "&mut State"]);
        let _ = writeln!(text, "/// {} {} {}.", capital(self.word()), self.word(), self.word());
        let _ = writeln!(text, "pub fn {name}({argument}: {kind}) -> Result<(), Error> {{");
        for _ in 0..2 + self.random.below(6) {
            let (a, b) = (self.identifier(), self.name());
            let n = self.random.below(256);
            let _ = match self.random.below(5) {
                0 => writeln!(text, "    let mut {b} = {a}::new({n});"),
                1 => {
                    writeln!(text, "    if {argument}.len() > {n} {{\n        return {a};\n    }}")
                }
                2 => writeln!(text, "    for {b} in {a}.iter() {{\n        total += {b};\n    }}"),
                3 => writeln!(text, "    // {} {} {}", self.word(), self.word(), self.word()),
                _ => writeln!(text, "    self.{a}.push({b}.clone())?;"),
            };
        }
        text.push_str("    Ok(())\n}\n\n");
    }

    fn python(&mut self, text: &mut String) {
        let (name, argument) = (self.snake_case(), self.name());
        let _ = writeln!(text, "def {name}(self, {argument}=None, *, limit: int = 100):");
        let _ = writeln!(text, "    \"\"\"{} {}.\"\"\"", capital(self.word()), self.word());
        for _ in 0..2 + self.random.below(6) {
            let (a, b) = (self.identifier(), self.name());
            let n = self.random.below(10_000);
            let _ = match self.random.below(5) {
                0 => writeln!(text, "    {b} = [{a}(x) for x in {argument} if x != {n}]"),
                1 => writeln!(text, "    if not {a}:\n        raise ValueError(f\"{b}: {{{n}}}\")"),
                2 => writeln!(text, "    with open({b}, \"rb\") as f:\n        {a} = f.read({n})"),
                3 => writeln!(text, "    # {} {} {}", self.word(), self.word(), self.word()),
                _ => writeln!(text, "    self.{a}[\"{b}\"] = {argument}.get({n}, 0.{n})"),
            };
        }
        text.push_str("    return None\n\n\n");
    }

    /// What a tool returns.
    fn record(&mut self, text: &mut String) {
        let (key, value, path) = (self.identifier(), self.word(), self.name());
        let (number, id) = (self.random.below(1_000_000), self.random.next());
        let _ = writeln!(
            text,
            "{{\"id\": \"{id:016x}\", \"{key}\": {number}, \"status\": \"{value}\", \
             \"path\": \"src/{path}/{}.rs\", \"tags\": [\"{}\", \"{}\"], \"done\": {}}}",
            self.name(),
            self.word(),
            self.word(),
            number % 2 == 0,
        );
    }

    fn log_line(&mut self, text: &mut String) {
        let (hour, minute) = (self.random.below(24), self.random.below(60));
        let (second, milli) = (self.random.below(60), self.random.below(1_000));
        let level = self.random.pick(&["INFO", "INFO", "DEBUG", "WARN", "ERROR"]);
        let (module, key) = (self.identifier(), self.name());
        let _ = writeln!(
            text,
            "2026-03-{:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z {level:>5} {module}: \
             {} {} {key}={} took={}.{}ms 0x{:08x}",
            1 + self.random.below(28),
            self.word(),
            self.word(),
            self.random.below(100_000),
            self.random.below(900),
            self.random.below(10),
            self.random.next() as u32,
        );
    }

    fn east_asian(&mut self, text: &mut String) {
        let phrases = if self.random.below(3) == 0 { &self.japanese } else { &self.chinese };
        for _ in 0..2 + self.random.below(4) {
            text.push_str(phrases.choose(&mut self.random));
        }
        match self.random.below(4) {
            0 => drop(write!(text, " {} ", self.identifier())),
            1 => drop(write!(text, "{}", self.random.below(2_030))),
            _ => {}
        }
        text.push('。');
        if self.random.below(5) == 0 {
            text.push('\n');
        }
    }
}

/// A list from which the n-th entry is chosen with a weight of 1 / (n + 5).
///
/// The 5 (Mandelbrot's addition to Zipf's law) gives the first words of a short list about the
/// share that they have in real text.
struct Zipf {
    words: Vec<&'static str>,
    /// The sum of the weights up to and with each word.
    sums: Vec<u64>,
}

impl Zipf {
    fn new(list: &'static str) -> Self {
        let words: Vec<&str> = list.split_ascii_whitespace().collect();
        let mut sum = 0;
        let weights = (1..=words.len() as u64).map(|rank| 1_000_000 / (rank + 5));
        let sums = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        Self { words, sums }
    }

    fn choose(&self, random: &mut Random) -> &'static str {
        let total = *self.sums.last().expect("the word lists are not empty");
        let drawn = random.next() % total;
        self.words[self.sums.partition_point(|sum| *sum <= drawn)]
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// English, the most frequent first.
const WORDS: &str = "
the of and to a in is that for it as with on be this are by not or from an have which at but all
if we can will has one when there more was they you their would its other what about out so some
then them only may these time than into could no do any such new how each first where most also
after over way between must should because through same does two just like work well being even
while still case part many use both need before here state make set system number however those
find given without point place long result less since under order change group often problem value
question answer reason example function process known data different small large following general
possible form high level several important against during local public within along second almost
enough rather already always never around again another information program research development
government company service support community university available provide include require consider
continue increase reduce describe explain suggest follow remain appear become believe return write
read keep hold begin start stop open close move person people world country city house family
water money market price history language model memory context message token window request
response client server network database version document section chapter paragraph sentence
meaning detail summary decision evidence argument theory practice method measure experiment
observation hypothesis significant probability average distribution performance latency throughput
benchmark compiler runtime library interface contract implementation specification requirement
assumption constraint invariant consequence alternative nevertheless therefore although whether
perhaps certainly quickly slowly carefully eventually occasionally approximately simultaneously
unfortunately surprisingly independent comprehensive environment infrastructure configuration
authentication authorization serialization concurrency transaction durability consistency
availability replication partition snapshot rollback journal garden winter mountain river harbour
bicycle telescope orchestra architecture photograph kitchen breakfast umbrella neighbour
laboratory pharmaceutical constitutional entrepreneurship misunderstanding electromagnetic
thermodynamics biodiversity archaeological philosophical tremendous ambiguous meticulous
spontaneous idiosyncratic serendipity juxtaposition quintessential
";

/// Words of identifiers.
const NAMES: &str = "
index value name data key item list node size path result count config state buffer line text id
user file message length offset start end parent child entry map cache token request response
error handler context options client server session query table row column field record batch
version hash block chunk stream reader writer parser lexer encoder decoder cursor range view log
store snapshot branch commit merge diff patch schema kind role visitor builder iterator callback
timeout retry limit window threshold metric counter timer worker queue task job lock mutex channel
socket header body payload cookie url scheme host port route middleware template fragment widget
matrix vector tensor gradient epoch kernel layer embedding tokenizer vocabulary checkpoint
";

const CHINESE: &str = "
我们需要 检查一下 这个函数 的返回值 如果没有 错误信息 可以使用 上下文 模型的
数据库 在这里 因为 所以 用户的请求 已经完成 请注意 版本号 不同的
内存占用 性能 测试结果 ，然后 ，但是 保存到文件 消息列表 压缩 对话的历史
非常重要 下一步 让我看看 配置文件 服务器
";

const JAPANESE: &str = "
この関数は 値を返します エラーが 発生した場合 ファイルを 読み込んで ください データベース の設定
を確認する 必要があります メッセージ 履歴を 圧縮して から まで 、そして 、しかし
テストの結果 バージョン もう一度 東京 ユーザー について サーバーに 接続できません
";

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lines: &str) -> Vec<String> {
        lines.lines().map(|line| serde_json::from_str(line).expect("a JSON string")).collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_text() {
        assert_eq!(json_lines(7, 50_000), json_lines(7, 50_000));
        assert_ne!(json_lines(7, 50_000), json_lines(8, 50_000));
    }

    #[test]
    fn the_text_of_seed_1_never_changes() {
        // Published measurements use this text. After a change here they must be repeated.
        let text = json_lines(1, 100_000);
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!((text.len(), hash), (100_055, 2_549_046_698_694_003_871));
    }

    #[test]
    fn lines_are_strings_of_about_two_kilobytes() {
        let lines = json_lines(3, 200_000);
        assert!(lines.len() >= 200_000 && lines.ends_with('\n'));
        for piece in pieces(&lines) {
            assert!((PIECE..PIECE * 2).contains(&piece.len()), "{}", piece.len());
        }
    }

    #[test]
    fn every_kind_of_text_is_there() {
        let text = pieces(&json_lines(5, 300_000)).concat();
        for sign in [". ", "pub fn ", "def ", "\"status\": ", " WARN ", "。", "の"] {
            assert!(text.contains(sign), "no {sign:?}");
        }
    }

    #[test]
    fn later_words_are_chosen_less_often() {
        let (zipf, mut random) = (Zipf::new("a b c d"), Random::new(1));
        let mut counts = [0_u32; 4];
        for _ in 0..10_000 {
            let chosen = zipf.choose(&mut random);
            counts["abcd".find(chosen).expect("it is one of the words")] += 1;
        }
        assert!(counts.is_sorted_by(|earlier, later| earlier > later), "{counts:?}");
        assert!(counts[3] > 1_500, "{counts:?}");
    }
}
