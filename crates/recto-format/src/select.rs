//! Lists of messages inside larger documents, such as logs of evaluations.
//!
//! [`select_messages`] finds the lists and returns them as a separate transcript: one list per line. A path
//! names them: `request.messages`, `[*].traj` for the field of each item, `samples[0].messages`. If the
//! object around a list is a request to a provider, the transcript contains the whole request, because its
//! system text and its tools are outside the list.

use std::io::Read as _;

use crate::import::{Input, TranscriptWarning, Unpacked};
use crate::json::{self, Str};
use crate::{Error, Format};

/// Maximum depth at which lists are searched.
const MAX_DEPTH: usize = 16;
/// Maximum size of a document, in bytes.
const MAX_BYTES: u64 = 512 << 20;
/// Number of items that are examined to decide whether a list contains messages.
const JUDGED_ITEMS: usize = 32;

/// Lists of messages that were found in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// Path of the lists, with `[*]` for every index.
    pub path: String,
    /// Number of lists.
    pub count: usize,
    /// Paths of other lists of messages in the document.
    pub other_paths: Vec<String>,
    /// The lists, or the requests that contain them, one per line. Each is a conversation.
    pub transcript: String,
}

impl Selection {
    /// A warning that says where the messages were found.
    pub fn warning(&self) -> TranscriptWarning {
        let mut message = match self.count {
            1 => "1 list of messages was found here".to_owned(),
            count => format!("{count} lists of messages were found here"),
        };
        if !self.other_paths.is_empty() {
            message.push_str(&format!("; others: {}", self.other_paths.join(", ")));
        }
        TranscriptWarning::new(0, &*self.path, message)
    }
}

/// Finds the messages of a file that contains them inside a larger document. With `path`, selects the lists
/// at that path. Without `path` and `format`, searches the file if its format is not recognised. Returns
/// `None` if the import should read the file as it is; the import of a file without messages then fails
/// with a description.
pub fn find_messages<I: Input + ?Sized>(
    input: &I,
    format: Option<Format>,
    path: Option<&str>,
) -> Result<Option<Selection>, Error> {
    if path.is_some() {
        return select_messages_of(input, path).map(Some);
    }
    if format.is_some() {
        return Ok(None);
    }
    // The import reports a file that cannot be opened.
    let Ok(file) = input.open() else { return Ok(None) };
    match Format::recognise(file) {
        Err(Error::UnknownFormat { .. }) => Ok(select_messages_of(input, None).ok()),
        _ => Ok(None),
    }
}

/// Finds lists of messages in a JSON document or in JSON lines. Without a path, the lists that are nearest
/// to the top are selected. If there are several, the longest is selected.
///
/// ```
/// let log = r#"[{"task":7,"traj":[{"role":"user","content":"hi"}]},{"task":8,"traj":[]}]"#;
/// let found = recto_format::select_messages(log, None)?;
/// assert_eq!((&*found.path, found.count), ("[*].traj", 1));
/// assert_eq!(found.transcript, "[{\"role\":\"user\",\"content\":\"hi\"}]\n");
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn select_messages(document: &str, path: Option<&str>) -> Result<Selection, Error> {
    let values = values_of(document)?;
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for value in &values {
        search(value, "", 0, &mut |path, list| add(&mut found, path, list.to_owned()));
    }
    let nothing = |found: &[(String, Vec<String>)]| Error::NoMessages {
        path: path.map(str::to_owned),
        found: found.iter().map(|(path, _)| path.clone()).collect(),
    };
    let mut selected: (String, Vec<String>) = match path {
        None => {
            // Of lists of the same depth, the longest: a log may contain a list of the first messages in
            // addition to the list of all.
            let nearest = found.iter().min_by_key(|(path, lists)| {
                let depth = (path.matches("[*]").count(), path.matches('.').count());
                let messages: usize = lists.iter().map(|list| message_count(list, path)).sum();
                (depth, std::cmp::Reverse(messages))
            });
            nearest.cloned().ok_or_else(|| nothing(&found))?
        }
        Some(path) => {
            let segments = Segment::parse(path).ok_or_else(|| nothing(&found))?;
            let mut lists = Vec::new();
            values.iter().for_each(|value| at_path(value, &segments, &mut lists));
            (path.to_owned(), lists)
        }
    };
    if selected.1.is_empty() {
        return Err(nothing(&found));
    }
    selected.1.iter_mut().for_each(|list| list.push('\n'));
    let other_paths = found.into_iter().map(|(path, _)| path).filter(|it| *it != selected.0);
    Ok(Selection {
        other_paths: other_paths.collect(),
        path: selected.0,
        count: selected.1.len(),
        transcript: selected.1.concat(),
    })
}

/// [`select_messages`] for a file, which may be compressed.
///
/// The whole document is in memory: at most 512 MiB.
pub fn select_messages_of<I: Input + ?Sized>(
    input: &I,
    path: Option<&str>,
) -> Result<Selection, Error> {
    let mut document = String::new();
    let unpacked = Unpacked(input);
    let read = unpacked.open()?.take(MAX_BYTES + 1).read_to_string(&mut document);
    if document.len() as u64 > MAX_BYTES {
        let (line, what) = (0, "the document");
        return Err(Error::TooLarge { line, what, size: document.len() as u64, limit: MAX_BYTES });
    }
    read?;
    select_messages(&document, path)
}

/// The path of the first list of messages in the beginning of a document.
pub(crate) fn first_path(head: &str) -> Option<String> {
    let mut first = None;
    search(head, "", 0, &mut |path, _| {
        first.get_or_insert_with(|| path.to_owned());
    });
    first.filter(|path| !path.is_empty())
}

/// The values of a document: one, or one per line.
fn values_of(document: &str) -> Result<Vec<&str>, Error> {
    let mut values = Vec::new();
    let mut rest = document.trim_start_matches('\u{feff}').trim_start();
    while !rest.is_empty() {
        let mut parsed =
            serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        if let Some(Err(error)) = parsed.next() {
            let line = document[..document.len() - rest.len()].matches('\n').count() + error.line();
            let reason = format!("not JSON: {error}");
            return Err(Error::Malformed {
                format: None,
                line: line as u64,
                field: String::new(),
                reason,
            });
        }
        let end = parsed.byte_offset().max(1);
        values.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    Ok(values)
}

fn add(found: &mut Vec<(String, Vec<String>)>, path: &str, list: String) {
    match found.iter_mut().find(|(known, _)| known == path) {
        Some((_, lists)) => lists.push(list),
        None => found.push((path.to_owned(), vec![list])),
    }
}

/// Calls `found` for each list of messages in a value.
fn search(value: &str, path: &str, depth: usize, found: &mut dyn FnMut(&str, &str)) {
    if depth > MAX_DEPTH {
        return;
    }
    if json::is_list(value) {
        if is_message_list(value) {
            return found(path, value);
        }
        let path = format!("{path}[*]");
        json::items(value).for_each(|item| search(item, &path, depth + 1, found));
    } else if json::is_object(value) {
        for (key, field) in json::fields(value) {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{}", key.text());
            match is_message_list(field) && is_request(value, key) {
                true => found(&path, value),
                false => search(field, &path, depth + 1, found),
            }
        }
    }
}

/// Fields of requests other than the list of messages.
const REQUEST_FIELDS: &[&str] = &[
    "generationConfig",
    "inferenceConfig",
    "instructions",
    "max_tokens",
    "model",
    "system",
    "systemInstruction",
    "system_instruction",
    "toolConfig",
    "tools",
];

/// True if an object is a request to a provider whose messages are under this key.
fn is_request(object: &str, key: Str<'_>) -> bool {
    let fields = json::Object::of(object);
    ["messages", "input", "contents"].iter().any(|list| key.is(list))
        && REQUEST_FIELDS.iter().any(|field| fields.get(field).is_some())
}

/// Number of messages in a list, or in a request that contains the list in the last field of the path.
fn message_count(list: &str, path: &str) -> usize {
    let key = path.rsplit('.').next().unwrap_or_default();
    json::items(json::get(list, key).unwrap_or(list)).count()
}

/// True if at least half of the items have a role and content, or have `parts` as in Gemini, where the role
/// is optional.
fn is_message_list(list: &str) -> bool {
    let is_message = |item: &str| {
        let content = ["content", "parts", "tool_calls", "function_call"];
        let has_role = json::get_str(item, "role").is_some();
        let has_parts = || {
            let parts = json::get(item, "parts").map(json::items).into_iter().flatten();
            parts.take(1).any(|part| json::get_str(part, "text").is_some())
        };
        json::is_object(item)
            && (has_role && content.iter().any(|key| json::get(item, key).is_some()) || has_parts())
    };
    let (mut count, mut messages) = (0, 0);
    for item in json::items(list).take(JUDGED_ITEMS) {
        count += 1;
        messages += usize::from(is_message(item));
    }
    messages > 0 && messages * 2 >= count
}

/// A step of a path.
enum Segment {
    Field(String),
    Index(usize),
    /// `[*]`: every item.
    Any,
}

impl Segment {
    fn parse(path: &str) -> Option<Vec<Segment>> {
        let mut segments = Vec::new();
        for (number, field) in path.split('.').enumerate() {
            let (name, indices) = field.split_at(field.find('[').unwrap_or(field.len()));
            match name {
                "" if number > 0 || indices.is_empty() => return None,
                "" => {}
                name => segments.push(Segment::Field(name.to_owned())),
            }
            for index in indices.split_inclusive(']') {
                segments.push(match index.strip_prefix('[')?.strip_suffix(']')? {
                    "*" | "" => Segment::Any,
                    index => Segment::Index(index.parse().ok()?),
                });
            }
        }
        Some(segments)
    }
}

/// Adds the lists at a path, or the requests that contain them. A single message is a list of one.
fn at_path(value: &str, path: &[Segment], lists: &mut Vec<String>) {
    match path {
        [Segment::Field(name)]
            if json::get(value, name).is_some_and(is_message_list)
                && is_request(value, Str::escaped_text(name)) =>
        {
            lists.push(value.to_owned());
        }
        [] if json::is_object(value)
            && json::fields(value)
                .any(|(key, field)| is_message_list(field) && is_request(value, key)) =>
        {
            lists.push(value.to_owned());
        }
        [] if json::is_list(value) => lists.push(value.to_owned()),
        [] if json::get_str(value, "role").is_some_and(|role| !Str::is_empty(role)) => {
            lists.push(format!("[{value}]"));
        }
        [] => {}
        [Segment::Field(name), rest @ ..] if json::is_object(value) => {
            if let Some(value) = json::get(value, name) {
                at_path(value, rest, lists);
            }
        }
        [segment, rest @ ..] if json::is_list(value) => {
            for (number, item) in json::items(value).enumerate() {
                match segment {
                    Segment::Any => at_path(item, rest, lists),
                    Segment::Index(index) if *index == number => at_path(item, rest, lists),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"{"info":{"cost":1},"history":[{"role":"user","content":"a"}],"trajectory":[{"query":[{"role":"user","content":"a"}]},{"query":[{"role":"user","content":"b"}]}],"tags":["x"]}"#;

    #[test]
    fn the_lists_nearest_to_the_top_are_selected() {
        let found = select_messages(LOG, None).unwrap();
        assert_eq!((&*found.path, found.count), ("history", 1));
        assert_eq!(found.other_paths, ["trajectory[*].query"]);
    }

    #[test]
    fn of_lists_of_the_same_depth_the_longest_are_selected() {
        let log = r#"{"samples":[{"input":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}]}"#;
        let found = select_messages(log, None).unwrap();
        assert_eq!(found.path, "samples[*].messages");
        assert_eq!(found.other_paths, ["samples[*].input"]);
    }

    #[test]
    fn a_path_selects_other_lists() {
        let found = select_messages(LOG, Some("trajectory[*].query")).unwrap();
        assert_eq!(found.count, 2);
        let found = select_messages(LOG, Some("trajectory[1].query")).unwrap();
        assert_eq!(found.transcript, "[{\"role\":\"user\",\"content\":\"b\"}]\n");
        let found = select_messages(LOG, Some("history[0]")).unwrap();
        assert_eq!(found.transcript, "[{\"role\":\"user\",\"content\":\"a\"}]\n");
    }

    #[test]
    fn a_path_without_messages_is_an_error_that_names_the_others() {
        for path in ["tags[0]", "nowhere", "history.role", "[", "a..b", "trajectory[9].query"] {
            let error = select_messages(LOG, Some(path)).unwrap_err();
            assert!(error.to_string().contains("history, trajectory[*].query"), "{path}: {error}");
        }
        let error = select_messages(r#"{"a":[1]}"#, None).unwrap_err();
        assert_eq!(error.code(), "invalid_operation", "{error}");
        let error = select_messages("{\"a\":1}\n{\"b\":", None).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn a_nested_request_keeps_its_system_text_and_tools() {
        let request = r#"{"contents":[{"parts":[{"text":"q"}]}],"systemInstruction":{"parts":[{"text":"s"}]}}"#;
        let log = format!(r#"{{"id":1,"generateContentRequest":{request}}}"#);
        for path in [None, Some("generateContentRequest.contents"), Some("generateContentRequest")]
        {
            let found = select_messages(&log, path).unwrap();
            assert_eq!(
                (found.count, &*found.transcript),
                (1, &*format!("{request}\n")),
                "{path:?}"
            );
        }
    }

    #[test]
    fn messages_are_searched_only_in_documents_of_no_format() {
        let log = r#"{"run":{"steps":[{"role":"user","content":"a"}]}}"#;
        let found = find_messages(log, None, None).unwrap().unwrap();
        let warning = found.warning();
        assert_eq!((&*warning.field, warning.line), ("run.steps", 0));
        assert_eq!(warning.message, "1 list of messages was found here");
        assert_eq!(find_messages(log, Some(Format::OpenAiChat), None).unwrap(), None);
        assert_eq!(find_messages(r#"[{"role":"user","content":"a"}]"#, None, None).unwrap(), None);
        assert_eq!(find_messages(r#"{"a":1}"#, None, None).unwrap(), None);
        assert!(find_messages(log, None, Some("nowhere")).is_err());
    }

    #[test]
    fn json_lines_are_searched_line_by_line() {
        let lines = concat!(
            r#"{"request":{"messages":[{"role":"user","content":"a"}]}}"#,
            "\n",
            r#"{"request":{"messages":[{"role":"user","content":"b"}]}}"#,
        );
        let found = select_messages(lines, None).unwrap();
        assert_eq!((&*found.path, found.count), ("request.messages", 2));
    }
}
