//! Converts messages in other formats to Recto's own.

use recto::Message;
use recto_format::{Collected, Format, ImportOptions, Step, TranscriptWarning, import};

use crate::failure::Failure;

/// Converts messages of a format to Recto's own. The warnings list what cannot be represented.
pub(crate) fn convert(
    text: &str,
    format: Format,
) -> Result<(Vec<Message>, Vec<TranscriptWarning>), Failure> {
    let mut read = Collected::default();
    import(text, Some(format), &ImportOptions::default(), &mut read)?;
    let mut messages = Vec::new();
    for step in read.steps {
        match step {
            Step::Append(more) => messages.extend(more),
            Step::Start(_) if messages.is_empty() => {}
            Step::Envelope(_) => {}
            _ => {
                return Err(Failure::Usage(format!(
                    "the file contains more than messages (read as {format}): other conversations, \
                     branches or compactions; use `recto import`"
                )));
            }
        }
    }
    if messages.is_empty() {
        return Err(Failure::NothingToImport { format: format.name() });
    }
    Ok((messages, read.warnings))
}
