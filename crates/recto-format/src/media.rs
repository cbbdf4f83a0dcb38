//! Media: images, audio and files in a message.
//!
//! Recto's form is `{"type": "image" | "audio" | "file", "source": …}` with one of these sources:
//!
//! ```json
//! {"type": "base64", "media_type": "image/png", "data": "…"}
//! {"type": "url", "url": "https://…"}
//! {"type": "file_id", "file_id": "…", "provider": "openai"}
//! {"type": "text", "text": "…"}
//! ```
//!
//! A file may have a `name`. `{"type": "image", "image_url": {"url": …}}` is accepted too. URLs are
//! passed on and never fetched.

use crate::json::{self, Str};

/// Kind of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaKind {
    /// An image.
    Image,
    /// An audio recording.
    Audio,
    /// A document or any other file.
    File,
}

/// An image, audio or file part of a message.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Media<'a> {
    /// Kind of media.
    pub kind: MediaKind,
    /// The content, or its location.
    pub body: MediaBody<'a>,
    /// Name of the file.
    pub name: Option<Str<'a>>,
    /// The JSON of the part.
    pub json: &'a str,
}

/// The content of media, or its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaBody<'a> {
    /// Inline, in base64.
    Base64 {
        /// Media type, such as `image/png`.
        media_type: Str<'a>,
        /// The bytes in base64.
        data: Str<'a>,
    },
    /// At a URL.
    Url(Str<'a>),
    /// A file stored at a provider.
    FileId {
        /// Id of the file.
        id: Str<'a>,
        /// The provider that stores it.
        provider: Option<Str<'a>>,
    },
    /// Inline, as text.
    Text(Str<'a>),
    /// No source, or one of an unknown form.
    Unknown,
}

impl<'a> Media<'a> {
    /// Reads an `image`, `audio` or `file` part.
    pub(crate) fn of(part: &'a str) -> Media<'a> {
        let kind = match json::get_str(part, "type").map(Str::escaped) {
            Some("audio") => MediaKind::Audio,
            Some("file") => MediaKind::File,
            _ => MediaKind::Image,
        };
        let name = json::get_str(part, "name");
        Media { kind, body: MediaBody::of(part), name, json: part }
    }
}

/// Registered media types that providers accept, each with unregistered names that programs use for it.
/// Case and parameters after a semicolon are ignored.
const TYPES: &[(&str, &[&str])] = &[
    ("image/jpeg", &["image/jpg", "image/pjpeg", "image/x-jpeg"]),
    ("image/png", &["image/x-png"]),
    ("image/gif", &[]),
    ("image/webp", &[]),
    ("image/heic", &[]),
    ("image/heif", &[]),
    ("application/pdf", &["application/x-pdf"]),
    ("audio/wav", &["audio/x-wav", "audio/wave", "audio/vnd.wave"]),
    ("audio/mpeg", &["audio/mp3", "audio/x-mp3"]),
    ("audio/aiff", &["audio/x-aiff"]),
    ("audio/aac", &[]),
    ("audio/ogg", &[]),
    ("audio/flac", &["audio/x-flac"]),
    ("text/plain", &[]),
];

/// The registered name of a media type, if it is in [`TYPES`].
fn registered_type(written: &str) -> Option<&'static str> {
    let name = written.split(';').next()?.trim();
    let is_it = |known: &&str| known.eq_ignore_ascii_case(name);
    let found = TYPES.iter().find(|(name, aliases)| is_it(name) || aliases.iter().any(&is_it));
    found.map(|(name, _)| *name)
}

impl<'a> Media<'a> {
    /// The media with the registered name of its type. Providers accept only registered names.
    pub(crate) fn with_registered_type(&self) -> Media<'a> {
        let mut media = *self;
        if let MediaBody::Base64 { media_type, data } = self.body
            && let Some(name) = registered_type(&media_type.text())
        {
            media.body = MediaBody::Base64 { media_type: Str::plain(name), data };
        }
        media
    }
}

impl<'a> MediaBody<'a> {
    fn of(part: &'a str) -> MediaBody<'a> {
        if let Some(source) = json::get(part, "source") {
            return MediaBody::of_source(source).unwrap_or(MediaBody::Unknown);
        }
        let url = json::get(part, "image_url")
            .and_then(|value| Str::of(value).or_else(|| json::get_str(value, "url")));
        url.map_or(MediaBody::Unknown, MediaBody::of_url)
    }

    fn of_source(source: &'a str) -> Option<MediaBody<'a>> {
        Some(match &*json::get_str(source, "type")?.text() {
            "base64" => MediaBody::Base64 {
                media_type: json::get_str(source, "media_type")?,
                data: json::get_str(source, "data")?,
            },
            "url" => MediaBody::of_url(json::get_str(source, "url")?),
            "file_id" => MediaBody::FileId {
                id: json::get_str(source, "file_id")?,
                provider: json::get_str(source, "provider"),
            },
            "text" => MediaBody::Text(json::get_str(source, "text")?),
            _ => return None,
        })
    }

    /// The media at a URL. A `data:` URL is inline content.
    pub(crate) fn of_url(url: Str<'a>) -> MediaBody<'a> {
        let inline = url.escaped().strip_prefix("data:").and_then(|rest| {
            let (media_type, data) = rest.split_once(";base64,")?;
            let media_type = media_type.split(';').next()?;
            Some((Str::escaped_text(media_type), Str::escaped_text(data)))
        });
        match inline {
            Some((media_type, data)) => MediaBody::Base64 { media_type, data },
            None => MediaBody::Url(url),
        }
    }
}

/// Writes media in Recto's form. `extra` contains further fields, such as `,"detail":"low"`.
pub(crate) fn write(
    kind: MediaKind,
    body: MediaBody<'_>,
    name: Option<Str<'_>>,
    extra: &str,
    out: &mut String,
) {
    out.push_str(match kind {
        MediaKind::Image => r#"{"type":"image","source":"#,
        MediaKind::Audio => r#"{"type":"audio","source":"#,
        MediaKind::File => r#"{"type":"file","source":"#,
    });
    match body {
        MediaBody::Base64 { media_type, data } => {
            out.push_str(r#"{"type":"base64","media_type":"#);
            json::push_str(media_type, out);
            out.push_str(r#","data":"#);
            json::push_str(data, out);
        }
        MediaBody::Url(url) => {
            out.push_str(r#"{"type":"url","url":"#);
            json::push_str(url, out);
        }
        MediaBody::FileId { id, provider } => {
            out.push_str(r#"{"type":"file_id","file_id":"#);
            json::push_str(id, out);
            if let Some(provider) = provider {
                out.push_str(r#","provider":"#);
                json::push_str(provider, out);
            }
        }
        MediaBody::Text(text) => {
            out.push_str(r#"{"type":"text","text":"#);
            json::push_str(text, out);
        }
        MediaBody::Unknown => out.push_str(r#"{"type":"unknown""#),
    }
    out.push('}');
    if let Some(name) = name {
        out.push_str(r#","name":"#);
        json::push_str(name, out);
    }
    out.push_str(extra);
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_round_trips() {
        for part in [
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#,
            r#"{"type":"image","source":{"type":"url","url":"https://a/b.png"}}"#,
            r#"{"type":"file","source":{"type":"file_id","file_id":"f1","provider":"openai"},"name":"a.pdf"}"#,
            r#"{"type":"file","source":{"type":"text","text":"a\nb"}}"#,
            r#"{"type":"audio","source":{"type":"base64","media_type":"audio/wav","data":""}}"#,
        ] {
            let media = Media::of(part);
            let mut out = String::new();
            write(media.kind, media.body, media.name, "", &mut out);
            assert_eq!(out, part);
        }
    }

    #[test]
    fn a_data_url_is_inline_content() {
        let media =
            Media::of(r#"{"type":"image","image_url":{"url":"data:image/gif;base64,R0lGOD=="}}"#);
        let MediaBody::Base64 { media_type, data } = media.body else { panic!("{media:?}") };
        assert_eq!((media_type.escaped(), data.escaped()), ("image/gif", "R0lGOD=="));
        assert_eq!(Media::of(r#"{"type":"image"}"#).body, MediaBody::Unknown);
    }
}
