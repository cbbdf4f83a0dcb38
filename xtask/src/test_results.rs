//! Counts the tests in the output of `cargo test`.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// The sums over any number of test programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestResults {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl TestResults {
    /// Sums the `test result:` lines. Other lines are ignored.
    pub(crate) fn from_output(output: &str) -> Self {
        output.lines().filter_map(|line| Self::from_line(&without_colours(line))).sum()
    }

    /// Number of test programs that crashed: they have started but printed no result.
    pub(crate) fn crashes_in(output: &str) -> u64 {
        let (mut begun, mut ended) = (0_u64, 0);
        for line in output.lines().map(without_colours) {
            begun += u64::from(is_beginning(&line));
            ended += u64::from(Self::from_line(&line).is_some());
        }
        begun.saturating_sub(ended)
    }

    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …`
    fn from_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |word: &str| {
            let mut parts = counts.split("; ").filter_map(|part| part.split_once(' '));
            parts.find(|(_, name)| *name == word)?.0.parse().ok()
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
            ignored: count("ignored")?,
        })
    }
}

impl AddAssign for TestResults {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

impl Sum for TestResults {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |mut sum, results| {
            sum += results;
            sum
        })
    }
}

/// The summary that continuous integration reads.
impl fmt::Display for TestResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// `running 3 tests`
fn is_beginning(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    matches!(words[..], ["running", n, "test" | "tests"] if n.parse::<u64>().is_ok())
}

/// Doctests keep cargo's colours even if the output is not a terminal.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // An escape sequence ends with its first letter.
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_programs_are_added_up() {
        let output = "\
running 2 tests
test a ... ok
test b ... FAILED

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests recto_core
test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 4 filtered out; finished in 1.20s
";
        let results = TestResults::from_output(output);
        assert_eq!(results, TestResults { passed: 13, failed: 1, ignored: 3 });
        assert_eq!(results.to_string(), "13 passed, 1 failed");
    }

    #[test]
    fn a_program_without_a_result_has_crashed() {
        let output = "running 1 test\n\
                      running 2 tests\n\
                      test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n";
        assert_eq!(TestResults::crashes_in(output), 1);
        assert_eq!(TestResults::crashes_in("running 3 laps\nrunning tests\n"), 0);
    }

    #[test]
    fn colours_do_not_hide_a_result() {
        let line = "test result: \u{1b}[32mok\u{1b}[m. 7 passed; 0 failed; 0 ignored; 0 measured";
        assert_eq!(TestResults::from_output(line).passed, 7);
    }

    #[test]
    fn lines_that_only_mention_results_count_nothing() {
        let output = "  test result: ok. 7 passed; 0 failed; 0 ignored\n\
                      test result: pending\n\
                      test result: ok. many passed; 0 failed; 0 ignored\n\
                      note: test result: ok. 7 passed; 0 failed; 0 ignored";
        assert_eq!(TestResults::from_output(output), TestResults::default());
    }
}
