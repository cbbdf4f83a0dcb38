//! Sessions in opencode's storage folder, as the documents that `opencode export` writes.
//!
//! ```text
//! storage/session/PROJECT/SESSION.json    the session
//! storage/message/SESSION/MESSAGE.json    its messages
//! storage/part/MESSAGE/PART.json          their parts; older releases: storage/part/PART.json
//! ```
//!
//! The names of files sort by time.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

/// The sessions of the storage folder at this path, or the session whose file is at this path, as one
/// document per session. `None` if the path is neither.
pub(crate) fn documents(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let (storage, sessions) = if path.is_dir() {
        if !path.join("session").is_dir() || !path.join("message").is_dir() {
            return Ok(None);
        }
        let mut sessions = Vec::new();
        for project in entries(&path.join("session"))? {
            sessions.extend(entries(&project)?);
        }
        (path, sessions)
    } else {
        let folder = path.parent().and_then(Path::parent);
        let folder = folder.filter(|folder| folder.file_name().is_some_and(|it| it == "session"));
        match folder.and_then(Path::parent) {
            Some(storage) if storage.join("message").is_dir() => (storage, vec![path.to_owned()]),
            _ => return Ok(None),
        }
    };
    let loose_parts = loose_parts(&storage.join("part"))?;
    let mut out = Vec::new();
    for session in sessions {
        let info = Item::read(&session)?;
        out.extend_from_slice(b"{\"info\":");
        out.extend_from_slice(info.json.get().as_bytes());
        out.extend_from_slice(b",\"messages\":[");
        for (number, file) in entries(&storage.join("message").join(&info.id))?.iter().enumerate() {
            let message = Item::read(file)?;
            let mut parts = Vec::new();
            for file in entries(&storage.join("part").join(&message.id))? {
                parts.push(Item::read(&file)?.json);
            }
            let loose = loose_parts.get(&message.id).into_iter().flatten();
            let parts = parts.iter().chain(loose).map(|part| part.get()).collect::<Vec<_>>();
            let comma = if number == 0 { "" } else { "," };
            let (info, parts) = (message.json.get(), parts.join(","));
            out.extend_from_slice(
                format!("{comma}{{\"info\":{info},\"parts\":[{parts}]}}").as_bytes(),
            );
        }
        out.extend_from_slice(b"]}\n");
    }
    Ok(Some(out))
}

/// A JSON file of the storage.
struct Item {
    json: Box<RawValue>,
    id: String,
    /// The message of a part.
    message: Option<String>,
}

impl Item {
    fn read(file: &Path) -> io::Result<Item> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Ids {
            id: String,
            #[serde(rename = "messageID")]
            message: Option<String>,
        }
        let invalid = |reason: String| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {reason}", file.display()))
        };
        let text = std::fs::read_to_string(file).map_err(|error| invalid(error.to_string()))?;
        let json: Box<RawValue> =
            serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        let Ids { id, message } =
            serde_json::from_str(json.get()).map_err(|error| invalid(error.to_string()))?;
        // The id is the name of a folder.
        match id.contains(['/', '\\']) || id.starts_with('.') {
            true => Err(invalid(format!("the id {id:?} is not valid"))),
            false => Ok(Item { json, id, message }),
        }
    }
}

/// The parts that are in the folder itself, by message.
fn loose_parts(folder: &Path) -> io::Result<BTreeMap<String, Vec<Box<RawValue>>>> {
    let mut parts: BTreeMap<String, Vec<Box<RawValue>>> = BTreeMap::new();
    for file in entries(folder)?.iter().filter(|file| file.is_file()) {
        let Item { json, message, .. } = Item::read(file)?;
        if let Some(message) = message {
            parts.entry(message).or_default().push(json);
        }
    }
    Ok(parts)
}

/// The JSON files and folders in a folder, by name. A missing folder has none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = match folder.read_dir() {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = listed.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| path.is_dir() || path.extension().is_some_and(|it| it == "json"));
    paths.sort();
    Ok(paths)
}
