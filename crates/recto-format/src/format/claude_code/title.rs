//! The title of a session. It can be anywhere in the file, so a first pass searches for it.

use std::io::Read;

use memchr::{memchr, memmem, memrchr};

use super::late::LateParents;
use crate::Error;
use crate::import::Input;
use crate::json;

/// Maximum length in bytes of a line with a title. Longer lines are skipped.
const MAX_LINE: usize = 64 << 10;

/// Size in bytes of a read.
const CHUNK: usize = 256 << 10;

/// Every line with a title contains one of these texts: the end of its `type`.
const TYPE_ENDS: [&str; 2] = ["-title\"", "\"summary\""];

/// Finds the title given by the user, otherwise that given by the model, otherwise the last summary.
/// `parents` receives all bytes of the file.
pub(super) fn find(input: &dyn Input, parents: &mut LateParents) -> Result<Option<String>, Error> {
    let mut file = input.open()?;
    let mut titles =
        Titles { finders: TYPE_ENDS.map(memmem::Finder::new), found: Default::default() };
    let mut buffer = vec![0; MAX_LINE + CHUNK];
    // Length of an incomplete line at the start of the buffer, and whether the line is too long.
    let (mut kept, mut is_long) = (0, false);
    loop {
        let count = match file.read(&mut buffer[kept..]) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let end = kept + count;
        parents.scan(&buffer[kept..end]);
        // Only the last line of a file may have no newline.
        let lines = match memrchr(b'\n', &buffer[kept..end]) {
            _ if count == 0 => end,
            Some(newline) => kept + newline + 1,
            None => 0,
        };
        let start = match memchr(b'\n', &buffer[..lines]) {
            Some(newline) if is_long => newline + 1,
            None if is_long => lines,
            _ => 0,
        };
        titles.scan(&buffer[start..lines]);
        if count == 0 {
            return Ok(titles.found.into_iter().flatten().next());
        }
        is_long &= lines == 0;
        buffer.copy_within(lines..end, 0);
        kept = end - lines;
        if kept > MAX_LINE {
            (kept, is_long) = (0, true);
        }
    }
}

struct Titles {
    finders: [memmem::Finder<'static>; 2],
    /// The title given by the user, the title given by the model, and the last summary.
    found: [Option<String>; 3],
}

impl Titles {
    /// Scans complete lines. Lines that contain none of the texts are not split off, because most lines
    /// have no title.
    fn scan(&mut self, lines: &[u8]) {
        let mut at = 0;
        let next = |finder: &memmem::Finder<'_>, at: usize| {
            finder.find(&lines[at..]).map_or(lines.len(), |place| at + place)
        };
        let mut places = [0, 1].map(|which| next(&self.finders[which], 0));
        while at < lines.len() {
            for (place, finder) in places.iter_mut().zip(&self.finders) {
                if *place < at {
                    *place = next(finder, at);
                }
            }
            let place = places[0].min(places[1]);
            if place == lines.len() {
                return;
            }
            let start = memrchr(b'\n', &lines[..place]).map_or(0, |newline| newline + 1);
            let end = memchr(b'\n', &lines[place..]).map_or(lines.len(), |end| place + end + 1);
            self.line(&lines[start..end]);
            at = end;
        }
    }

    fn line(&mut self, line: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(line).ok().filter(|line| line.len() <= MAX_LINE)?;
        let text = json::checked(text).filter(|text| json::is_object(text))?;
        let kind = json::get_str(text, "type")?.text();
        let kinds = ["custom-title", "ai-title", "summary"];
        let which = kinds.iter().position(|known| *known == kind)?;
        let keys = [["customTitle", "title"], ["aiTitle", "title"], ["summary", "title"]];
        let title = keys[which].iter().find_map(|key| json::get_str(text, key));
        let title = title.filter(|title| !title.is_empty())?;
        self.found[which] = Some(title.text().into_owned());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(file: &str) -> Option<String> {
        find(&file.as_bytes().to_vec(), &mut LateParents::default()).unwrap()
    }

    #[test]
    fn titles_are_found_wherever_a_chunk_ends() {
        let custom = r#"{"type":"custom-title","customTitle":"Mine"}"#;
        let summary = r#"{"type":"summary","summary":"Old"}"#;
        for before in (CHUNK - 100..CHUNK + 200).step_by(7) {
            let file = format!("{summary}\n{}\n{custom}\n{{}}\n", " ".repeat(before));
            assert_eq!(title(&file).as_deref(), Some("Mine"), "{before}");
            // The last line has no newline. The last of several summaries is used.
            let file =
                format!("{}\n{summary}\n{}", "x".repeat(before), summary.replace("Old", "New"));
            assert_eq!(title(&file).as_deref(), Some("New"), "{before}");
        }
    }

    #[test]
    fn a_long_line_is_skipped_and_the_next_line_is_read() {
        let long = format!(r#"{{"type":"summary","summary":"{}"}}"#, "x".repeat(3 * CHUNK));
        assert_eq!(title(&long).as_deref(), None);
        let file = format!("{long}\n{}", r#"{"type":"ai-title","aiTitle":"Short"}"#);
        assert_eq!(title(&file).as_deref(), Some("Short"));
        assert_eq!(title("").as_deref(), None);
    }
}
