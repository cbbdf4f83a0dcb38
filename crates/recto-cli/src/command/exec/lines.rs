//! A buffered line reader that reports whether the next line is already in its buffer.

use std::io::{self, Read};
use std::ops::Range;

/// Maximum length of a line, in bytes. A longer line is skipped, so that it does not fill the memory.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Initial size of the buffer.
const INITIAL_BUFFER_BYTES: usize = 1 << 16;

/// A buffered reader of lines.
pub(super) struct Lines<'a> {
    input: &'a mut dyn Read,
    /// The bytes up to `filled` are valid.
    buffer: Vec<u8>,
    filled: usize,
    /// Start of the next line.
    start: usize,
    /// The bytes from `start` to this position contain no line break.
    searched: usize,
    is_at_end: bool,
    /// Number of skipped bytes of a line that is too long.
    skipped: usize,
    max_line_bytes: usize,
}

/// Result of reading a line.
#[derive(Debug)]
pub(super) enum Next<'a> {
    /// A line without its line break.
    Line(&'a [u8]),
    /// A line that is longer than [`MAX_LINE_BYTES`].
    TooLong {
        size: usize,
        limit: usize,
    },
    Failed(io::Error),
    End,
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: &'a mut dyn Read) -> Lines<'a> {
        Lines {
            input,
            buffer: vec![0; INITIAL_BUFFER_BYTES],
            filled: 0,
            start: 0,
            searched: 0,
            is_at_end: false,
            skipped: 0,
            max_line_bytes: MAX_LINE_BYTES,
        }
    }

    /// Whether the buffer contains the next line with its line break, so that reading it does not block.
    pub(super) fn has_next(&mut self) -> bool {
        self.find().is_some()
    }

    /// The position of the line break that ends the next line. `None` if it is not in the buffer.
    fn find(&mut self) -> Option<usize> {
        match memchr::memchr(b'\n', &self.buffer[self.searched..self.filled]) {
            Some(at) => {
                self.searched += at;
                Some(self.searched)
            }
            None => {
                self.searched = self.filled;
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
                return self.line(line);
            }
            if self.is_at_end {
                let line = self.start..self.filled;
                self.start = self.filled;
                return match line.is_empty() && self.skipped == 0 {
                    true => Next::End,
                    // The last line may have no line break.
                    false => self.line(line),
                };
            }
            if let Err(error) = self.fill() {
                return Next::Failed(error);
            }
        }
    }

    fn line(&mut self, line: Range<usize>) -> Next<'_> {
        let size = std::mem::take(&mut self.skipped) + line.len();
        match size > self.max_line_bytes {
            true => Next::TooLong { size, limit: self.max_line_bytes },
            false => Next::Line(&self.buffer[line]),
        }
    }

    /// Reads more bytes. If the buffer is full, the incomplete line moves to the front, and the buffer
    /// doubles if that frees less than half of it. So a line is moved O(log length) times. The bytes of a
    /// line that is too long are discarded and counted in `skipped`.
    fn fill(&mut self) -> io::Result<()> {
        if self.skipped > 0 || self.filled - self.start > self.max_line_bytes {
            self.skipped += self.filled - self.start;
            (self.start, self.filled) = (0, 0);
            self.buffer.truncate(INITIAL_BUFFER_BYTES);
            self.buffer.shrink_to_fit();
        }
        if self.start == self.filled {
            (self.start, self.filled) = (0, 0);
        }
        if self.filled == self.buffer.len() {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
            if self.filled > self.buffer.len() / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        self.searched = self.filled;
        let read = loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done?,
            }
        };
        self.filled += read;
        self.is_at_end = read == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns a few bytes at a time.
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
        while let Next::Line(line) = lines.next() {
            found.push(line.to_vec());
        }
        found
    }

    #[test]
    fn lines_do_not_depend_on_the_size_of_reads() {
        let text = b"one\n\ntwo two\nlast without an end";
        let lines: Vec<&[u8]> = vec![b"one", b"", b"two two", b"last without an end"];
        for drip in [1, 2, 5, 1_000] {
            assert_eq!(lines_of(text, drip), lines, "{drip}");
        }
        assert_eq!(lines_of(b"", 1), Vec::<Vec<u8>>::new());
        assert_eq!(lines_of(b"\n", 1), [b""]);
    }

    #[test]
    fn a_complete_line_in_the_buffer_is_reported() {
        let mut input = Drip(b"a\nb\nc", 4);
        let mut lines = Lines::new(&mut input);
        assert!(!lines.has_next());
        assert!(matches!(lines.next(), Next::Line(b"a")));
        assert!(lines.has_next());
        assert!(matches!(lines.next(), Next::Line(b"b")));
        assert!(!lines.has_next());
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let limit = 1 << 18;
        let line = |length: usize| vec![b'x'; length];
        let text = [line(1 << 20), line(limit), line(limit + 1), b"next".to_vec(), line(1 << 20)];
        let text = text.join(&b'\n');
        for drip in [1 << 10, 1 << 16, usize::MAX] {
            let mut input = Drip(&text, drip);
            let mut lines = Lines { max_line_bytes: limit, ..Lines::new(&mut input) };
            let is = |next: Next<'_>, length: usize| match next {
                Next::TooLong { size, limit } => size == length && size > limit,
                Next::Line(line) => line.len() == length && length <= limit,
                _ => false,
            };
            for length in [1 << 20, limit, limit + 1, 4, 1 << 20] {
                assert!(is(lines.next(), length), "{length} {drip}");
                assert!(lines.buffer.capacity() <= 4 * limit);
            }
            assert!(matches!(lines.next(), Next::End));
            assert!(matches!(lines.next(), Next::End));
        }
    }

    #[test]
    fn a_long_line_is_not_searched_again_for_each_read() {
        let text = vec![b'x'; 8 << 20];
        let mut input = Drip(&text, 1 << 12);
        let mut lines = Lines::new(&mut input);
        let (mut grown, mut moved, mut before) = (0, 0, lines.buffer.as_ptr());
        while !lines.is_at_end {
            assert!(lines.find().is_none());
            let length = lines.buffer.len();
            lines.fill().unwrap();
            grown += lines.buffer.len() - length;
            moved += usize::from(lines.buffer.as_ptr() != before);
            before = lines.buffer.as_ptr();
        }
        assert!(matches!(lines.next(), Next::Line(line) if line == text));
        // The buffer doubles and is never allocated twice with the same size.
        assert!(grown <= 16 << 20, "{grown}");
        assert!(moved <= 8, "{moved}");
    }
}
