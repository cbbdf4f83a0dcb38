//! Lines of input. It is known whether the next one is here already.

use std::io::{self, Read};

/// A longer line is not kept in memory.
const LONGEST: usize = 64 << 20;

/// Reads lines.
pub(super) struct Lines<'a> {
    input: &'a mut dyn Read,
    buffer: Vec<u8>,
    /// Where the next line starts.
    start: usize,
    /// Up to here no line end was found.
    searched: usize,
    is_at_end: bool,
    /// A line was too long, and its rest is still to come.
    skips: bool,
    longest: usize,
}

/// What comes next.
pub(super) enum Next<'a> {
    /// A line without its end, or why it cannot be read.
    Line(Result<&'a [u8], &'static str>),
    /// A line that is longer than any request.
    TooLong,
    Broken(io::Error),
    End,
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: &'a mut dyn Read) -> Lines<'a> {
        Lines {
            input,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            is_at_end: false,
            skips: false,
            longest: LONGEST,
        }
    }

    /// Whether the next line is here, so that nobody has to be waited for.
    pub(super) fn has_next(&mut self) -> bool {
        self.find().is_some()
    }

    /// Where the next line ends.
    fn find(&mut self) -> Option<usize> {
        let found = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n');
        match found {
            Some(at) => {
                self.searched += at;
                Some(self.searched)
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    pub(super) fn next(&mut self) -> Next<'_> {
        loop {
            if let Some(end) = self.find() {
                let line = self.start..end;
                self.start = end + 1;
                self.searched = self.start;
                if std::mem::take(&mut self.skips) {
                    return Next::TooLong;
                }
                return Next::Line(Ok(&self.buffer[line]));
            }
            if self.is_at_end {
                let line = self.start..self.buffer.len();
                self.start = self.buffer.len();
                self.searched = self.start;
                return match (std::mem::take(&mut self.skips), line.is_empty()) {
                    (true, _) => Next::TooLong,
                    (false, true) => Next::End,
                    // The last line may lack its end.
                    (false, false) => Next::Line(Ok(&self.buffer[line])),
                };
            }
            if let Err(error) = self.fill() {
                return Next::Broken(error);
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.searched = self.buffer.len();
        if self.buffer.len() > self.longest {
            self.buffer = Vec::new();
            self.searched = 0;
            self.skips = true;
        }
        let (before, more) = (self.buffer.len(), (1 << 16).max(self.buffer.len()));
        self.buffer.resize(before + more, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done,
            }
        };
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        self.is_at_end = read? == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn lines_of(text: &[u8], drip: usize) -> Vec<Vec<u8>> {
        let mut input = Drip(text, drip);
        let mut lines = Lines::new(&mut input);
        let mut found = Vec::new();
        while let Next::Line(Ok(line)) = lines.next() {
            found.push(line.to_vec());
        }
        found
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = b"one\n\ntwo two\nlast without an end";
        let lines: Vec<&[u8]> = vec![b"one", b"", b"two two", b"last without an end"];
        for drip in [1, 2, 5, 1_000] {
            assert_eq!(lines_of(text, drip), lines, "{drip}");
        }
        assert_eq!(lines_of(b"", 1), Vec::<Vec<u8>>::new());
        assert_eq!(lines_of(b"\n", 1), [b""]);
    }

    #[test]
    fn a_line_that_is_here_is_known() {
        let mut input = Drip(b"a\nb\nc", 4);
        let mut lines = Lines::new(&mut input);
        assert!(!lines.has_next());
        assert!(matches!(lines.next(), Next::Line(Ok(b"a"))));
        assert!(lines.has_next());
        assert!(matches!(lines.next(), Next::Line(Ok(b"b"))));
        assert!(!lines.has_next());
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_the_next_one_is_read() {
        let text = [vec![b'x'; 1 << 20], b"\nnext\n".to_vec()].concat();
        let mut input = Drip(&text, 1 << 10);
        let mut lines = Lines { longest: 1 << 16, ..Lines::new(&mut input) };
        assert!(matches!(lines.next(), Next::TooLong));
        assert!(lines.buffer.capacity() <= 1 << 18);
        assert!(matches!(lines.next(), Next::Line(Ok(b"next"))));
        assert!(matches!(lines.next(), Next::End));
    }
}
