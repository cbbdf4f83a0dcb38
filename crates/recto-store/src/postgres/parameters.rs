//! Parameters in the address of a PostgreSQL store: `postgres://HOST/DATABASE?NAME=VALUE&…`.
//!
//! The parameters of this crate are split off; the rest goes to the driver. A parameter that neither supports
//! is refused.

use std::time::Duration;

use super::PostgresOptions;
use super::encryption::Encryption;
use crate::Error;

/// Parameters that set fields of [`PostgresOptions`].
const OPTIONS: [&str; 6] =
    ["answer_timeout", "connections", "erase_wait", "lock_timeout", "statement_timeout", "wait"];

/// Parameters of encryption.
const ENCRYPTION: [&str; 2] = ["sslmode", "sslrootcert"];

/// Parameters that the driver supports.
const DRIVER: [&str; 17] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// How much longer the client waits for an answer than the server may work on a statement.
const ANSWER_MARGIN: Duration = Duration::from_secs(30);

/// An address, divided into the part for the driver and the parameters of this crate.
pub(super) struct Parameters {
    /// The address for the driver.
    pub(super) address: String,
    pub(super) encryption: Encryption,
    /// The given options, overridden by those in the address.
    pub(super) options: PostgresOptions,
}

impl Parameters {
    pub(super) fn read(address: &str, options: PostgresOptions) -> Result<Parameters, Error> {
        let (front, query) = address.split_once('?').unwrap_or((address, ""));
        let mut encryption = Encryption::default();
        let mut options = options;
        let mut has_answer_timeout = false;
        let mut has_statement_timeout = false;
        let mut rest = Vec::new();
        for field in query.split('&').filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            match name {
                "sslmode" => encryption.mode = Some(value.to_owned()),
                "sslrootcert" => encryption.roots = Some(unescaped(value)),
                "connections" => options.connections = count(value)?,
                "wait" => options.wait = duration(name, value)?,
                "erase_wait" => options.erase_wait = duration(name, value)?,
                "lock_timeout" => options.lock_timeout = duration(name, value)?,
                "statement_timeout" => {
                    options.statement_timeout = duration(name, value)?;
                    has_statement_timeout = true;
                }
                "answer_timeout" => {
                    options.answer_timeout = duration(name, value)?;
                    has_answer_timeout = true;
                }
                name if DRIVER.contains(&name) => rest.push(field),
                name => return Err(unknown(name)),
            }
        }
        if has_statement_timeout && !has_answer_timeout {
            options.answer_timeout = options.statement_timeout.saturating_add(ANSWER_MARGIN);
        }
        let address = match rest.is_empty() {
            true => front.to_owned(),
            false => format!("{front}?{}", rest.join("&")),
        };
        Ok(Parameters { address, encryption, options })
    }
}

fn unknown(name: &str) -> Error {
    let mut known = [&OPTIONS[..], &ENCRYPTION, &DRIVER].concat();
    known.sort_unstable();
    // A question mark in a password starts the parameters if it is not escaped: then the rest of the
    // password would be read as a name.
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let given = match !name.is_empty() && name.len() <= 30 && name.bytes().all(is_plain) {
        true => format!("{name:?} is no parameter"),
        false => "it has an unknown parameter".to_owned(),
    };
    let reason = format!("{given}; the parameters are {}", known.join(", "));
    Error::InvalidParameter { reason }
}

fn count(value: &str) -> Result<usize, Error> {
    let count = value.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| Error::InvalidParameter {
        reason: "connections needs a number from 1 on".to_owned(),
    })
}

/// A time with its unit. A number alone would be ambiguous: the same names mean milliseconds in the
/// configuration of the server.
fn duration(name: &str, value: &str) -> Result<Duration, Error> {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let number = number.parse::<u32>().ok().map(u64::from).filter(|number| *number > 0);
    let duration = number.and_then(|number| match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "min" => Some(Duration::from_secs(number * 60)),
        _ => None,
    });
    duration.ok_or_else(|| Error::InvalidParameter {
        reason: format!("{name} needs a time with its unit, such as 500ms, 10s or 2min"),
    })
}

/// Decodes percent-encoding in a path.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let escaped = match (first, behind) {
            (b'%', [high, low, ..]) => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Parameters, Error> {
        let address = format!("postgres://user:secret@localhost/a?{query}");
        Parameters::read(&address, PostgresOptions::default())
    }

    #[test]
    fn time_limits_can_be_given_in_the_address() {
        let query = "lock_timeout=250ms&application_name=x&statement_timeout=2min&wait=3s&\
                     erase_wait=1s&connections=2";
        let Parameters { address, options, .. } = read(query).unwrap();
        assert_eq!(address, "postgres://user:secret@localhost/a?application_name=x");
        assert_eq!(options.lock_timeout, Duration::from_millis(250));
        assert_eq!(options.statement_timeout, Duration::from_secs(120));
        assert_eq!(options.answer_timeout, Duration::from_secs(150), "longer than a statement");
        assert_eq!(options.wait, Duration::from_secs(3));
        assert_eq!(options.erase_wait, Duration::from_secs(1));
        assert_eq!(options.connections, 2);
        let both = read("answer_timeout=5s&statement_timeout=4s").unwrap().options;
        assert_eq!(both.answer_timeout, Duration::from_secs(5));
        let none = read("").unwrap();
        assert_eq!(none.address, "postgres://user:secret@localhost/a");
        assert_eq!(none.options.answer_timeout, PostgresOptions::default().answer_timeout);
    }

    #[test]
    fn a_parameter_without_meaning_is_refused_with_the_known_ones() {
        for (query, part) in [
            (
                "lock_timeuot=1s",
                "\"lock_timeuot\" is no parameter; the parameters are answer_timeout,",
            ),
            ("lock_timeout=10", "lock_timeout needs a time with its unit"),
            ("lock_timeout=0s", "lock_timeout needs a time with its unit"),
            ("wait=-1s", "wait needs"),
            ("wait=", "wait needs"),
            ("erase_wait=99999999999s", "erase_wait needs"),
            ("connections=0", "from 1 on"),
            ("connections=many", "from 1 on"),
        ] {
            let error = read(query).err().unwrap();
            assert_eq!(error.code(), "invalid_operation");
            assert!(error.to_string().contains(part), "{query}: {error}");
        }
        let part_of_password = "postgres://user:pass?word1@localhost/a";
        let error = Parameters::read(part_of_password, PostgresOptions::default()).err().unwrap();
        assert!(!error.to_string().contains("word1"), "{error}");
    }
}
