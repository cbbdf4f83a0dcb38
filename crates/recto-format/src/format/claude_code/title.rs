//! The title of a session. It stands anywhere in the file, so it is looked for before the rest.

use std::io::{BufRead, BufReader, Read};

use memchr::memmem;

use crate::Error;
use crate::import::Input;
use crate::json;

/// A line with a title is short; longer ones are passed over.
const LONGEST: u64 = 64 << 10;

/// The title that the user gave, else the one that the model gave, else the last summary.
pub(super) fn find(input: &dyn Input) -> Result<Option<String>, Error> {
    let mut file = BufReader::with_capacity(256 << 10, input.open()?);
    let kinds = ["custom-title", "ai-title", "summary"];
    let finders = [memmem::Finder::new("-title\""), memmem::Finder::new("\"summary\"")];
    let mut found: [Option<String>; 3] = [None, None, None];
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST {
            skip_line(&mut file)?;
            continue;
        }
        if !finders.iter().any(|finder| finder.find(&line).is_some()) {
            continue;
        }
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        let Some(text) = json::checked(text).filter(|text| json::is_object(text)) else { continue };
        let kind = json::get_str(text, "type").map(|kind| kind.text()).unwrap_or_default();
        let Some(which) = kinds.iter().position(|known| *known == kind) else { continue };
        let keys = [["customTitle", "title"], ["aiTitle", "title"], ["summary", "title"]];
        let title = keys[which].iter().find_map(|key| json::get_str(text, key));
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            found[which] = Some(title.text().into_owned());
        }
    }
    Ok(found.into_iter().flatten().next())
}

fn skip_line(file: &mut impl BufRead) -> Result<(), Error> {
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            return Ok(());
        }
        match memchr::memchr(b'\n', chunk) {
            Some(end) => {
                file.consume(end + 1);
                return Ok(());
            }
            None => {
                let len = chunk.len();
                file.consume(len);
            }
        }
    }
}
