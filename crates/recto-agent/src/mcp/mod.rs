//! MCP client: the tools of Model Context Protocol servers as tools of an agent.
//!
//! ```text
//! McpServer ──► start, negotiate a protocol version ──► tools/list ──► McpTool, McpTool, …
//!                 │                                                       │ run
//!                 └── Connection: a process (process.rs)                  ▼
//!                     or HTTP (http.rs)                   tools/call ──► output or error
//! ```
//!
//! The client passes JSON through unchanged: a tool's schema and the input that the model wrote stay
//! text. `message.rs` encodes and decodes messages of both protocol generations: with a handshake (up
//! to 2025-11-25) and without one (from 2026-07-28).
//!
//! Every call ends with an output: a server that exits, times out, returns an error or sends invalid
//! messages results in an error output. The next call restarts a server that has exited. A call is
//! never repeated, because it may have had side effects.

mod http;
mod message;
mod process;
mod tool;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use self::http::HttpConnection;
use self::message::{McpError, Protocol};
use self::process::ProcessConnection;
use crate::secrets::{Secrets, redacted_url};
use crate::{Error, Secret};

pub use self::tool::McpTool;

/// Maximum timeout of the first `server/discover`, a request that only servers without a handshake support.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of pages in a list of tools.
const MAX_PAGES: usize = 100;

/// A Model Context Protocol server: its address and limits.
///
/// ```no_run
/// # async fn example(agent: recto_agent::Agent) -> Result<(), recto_agent::Error> {
/// use recto_agent::McpServer;
///
/// let files = McpServer::program("files", "mcp-server-filesystem").arguments(["/srv/data"]);
/// let agent = agent.tools(files.tools().await?); // files__read_file, files__list_directory, …
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpServer {
    /// The name of the server. Its tools are named `NAME__TOOL`, so that names of several servers do not
    /// collide.
    pub name: String,
    /// The address of the server.
    pub address: McpAddress,
    /// Maximum time to start and to list the tools. Default: 30 seconds.
    pub start_timeout: Duration,
    /// Maximum duration of a tool call. Default: 1 minute.
    pub call_timeout: Duration,
    /// Maximum output of a tool call in bytes. The middle of a longer output is removed. Default: 64 KiB.
    pub max_output_bytes: usize,
    /// Maximum size of a message of the server in bytes; over HTTP, of a response with all its events.
    /// Default: 16 MiB.
    pub max_message_bytes: usize,
    /// Whether headers and secrets in the URL may be sent over plain HTTP to a host that is not this
    /// machine. Default: false; such a server is refused.
    pub allow_http: bool,
}

/// The address of an MCP server.
#[derive(Clone)]
#[non_exhaustive]
pub enum McpAddress {
    /// A program that is started and communicates over standard input and output.
    Program {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Additional environment variables. The program inherits only basic variables of this process,
        /// such as `PATH` and `HOME`, so that it receives no API keys.
        variables: Vec<(String, Secret)>,
    },
    /// A running server with the streamable HTTP transport.
    Url {
        /// The URL.
        url: String,
        /// Headers of every request, such as `authorization`.
        headers: Vec<(String, Secret)>,
    },
}

impl fmt::Debug for McpAddress {
    /// Omits variables and headers, and redacts the URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            McpAddress::Program { program, arguments, .. } => {
                f.debug_tuple("Program").field(program).field(arguments).finish()
            }
            McpAddress::Url { url, .. } => f.debug_tuple("Url").field(&redacted_url(url)).finish(),
        }
    }
}

impl McpAddress {
    fn secrets(&self) -> Secrets {
        match self {
            McpAddress::Program { variables, .. } => {
                // Short values are usually settings, not secrets.
                let values = variables.iter().map(|(_, value)| value);
                Secrets::new(values.filter(|value| value.reveal().len() >= 8), "")
            }
            McpAddress::Url { url, headers } => {
                Secrets::new(headers.iter().map(|(_, value)| value), url)
            }
        }
    }
}

impl McpServer {
    /// A server that is a program.
    pub fn program(name: impl Into<String>, program: impl Into<String>) -> McpServer {
        let (arguments, variables) = (Vec::new(), Vec::new());
        McpServer::new(name, McpAddress::Program { program: program.into(), arguments, variables })
    }

    /// A server at a URL.
    pub fn url(name: impl Into<String>, url: impl Into<String>) -> McpServer {
        McpServer::new(name, McpAddress::Url { url: url.into(), headers: Vec::new() })
    }

    fn new(name: impl Into<String>, address: McpAddress) -> McpServer {
        McpServer {
            name: name.into(),
            address,
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
            max_output_bytes: 64 << 10,
            max_message_bytes: 16 << 20,
            allow_http: false,
        }
    }

    /// Adds arguments of the program. No effect for a URL.
    pub fn arguments<T: Into<String>>(mut self, given: impl IntoIterator<Item = T>) -> McpServer {
        if let McpAddress::Program { arguments, .. } = &mut self.address {
            arguments.extend(given.into_iter().map(Into::into));
        }
        self
    }

    /// Adds an environment variable of the program. No effect for a URL. Its value appears in no error
    /// and no debug output.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> McpServer {
        if let McpAddress::Program { variables, .. } = &mut self.address {
            variables.push((name.into(), Secret::new(value)));
        }
        self
    }

    /// Adds a header to every request to the URL. No effect for a program. Its value appears in no error
    /// and no debug output.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> McpServer {
        if let McpAddress::Url { headers, .. } = &mut self.address {
            headers.push((name.into(), Secret::new(value)));
        }
        self
    }

    /// Starts the server and lists its tools. A program runs until the last tool is dropped. A tool that
    /// cannot be rendered for every provider is omitted.
    pub async fn tools(self) -> Result<Vec<McpTool>, Error> {
        Ok(self.tools_with_warnings().await?.0)
    }

    /// Starts the server and lists its [tools](Self::tools), with a warning for each tool that is omitted
    /// because it cannot be rendered.
    pub async fn tools_with_warnings(self) -> Result<(Vec<McpTool>, Vec<String>), Error> {
        let secrets = self.address.secrets();
        let (connection, protocol) = (Mutex::new(None), Mutex::new(None));
        let server = Arc::new(Server { settings: self, secrets, connection, protocol });
        let limit = server.settings.start_timeout;
        let listed = tokio::time::timeout(limit, server.list()).await;
        let listed = listed.unwrap_or(Err(McpError::Timeout(limit)));
        let listed = listed.map_err(|error| Error::McpServer {
            name: server.settings.name.clone(),
            reason: error.redacted(&server.secrets).to_string(),
        })?;
        Ok(McpTool::all(&server, &listed))
    }
}

/// A server and its connection, which is established again after the server has exited.
#[derive(Debug)]
struct Server {
    settings: McpServer,
    secrets: Secrets,
    connection: Mutex<Option<Arc<Connection>>>,
    /// The protocol of the last connection. A restarted server is not probed again.
    protocol: Mutex<Option<Protocol>>,
}

/// A connection to a server.
#[derive(Debug)]
enum Connection {
    Process(ProcessConnection),
    Http(HttpConnection),
}

impl Connection {
    fn is_closed(&self) -> bool {
        match self {
            Connection::Process(connection) => connection.is_closed(),
            Connection::Http(connection) => connection.is_closed(),
        }
    }

    /// Sends a request and returns the JSON of its result. `params` is a JSON object in one line.
    async fn request(
        &self,
        method: &str,
        params: &str,
        timeout: Duration,
    ) -> Result<String, McpError> {
        match self {
            Connection::Process(connection) => connection.request(method, params, timeout).await,
            Connection::Http(connection) => connection.request(method, params, timeout).await,
        }
    }

    async fn notify(&self, method: &str) -> Result<(), McpError> {
        match self {
            Connection::Process(connection) => connection.notify(method),
            Connection::Http(connection) => connection.notify(method).await,
        }
    }

    /// Sets the protocol of later requests.
    fn set_protocol(&self, protocol: &Protocol) {
        if let Connection::Http(connection) = self {
            connection.set_protocol(protocol);
        }
    }
}

impl Server {
    fn start(&self) -> Result<Arc<Connection>, McpError> {
        let McpServer { max_message_bytes: max_bytes, allow_http, .. } = self.settings;
        Ok(Arc::new(match &self.settings.address {
            McpAddress::Program { program, arguments, variables } => Connection::Process(
                ProcessConnection::start(program, arguments, variables, max_bytes)?,
            ),
            McpAddress::Url { url, headers } => {
                Connection::Http(HttpConnection::new(url, headers, max_bytes, allow_http)?)
            }
        }))
    }

    /// An open connection and its protocol. Starts the server if it is not running.
    async fn connect(&self) -> Result<(Arc<Connection>, Protocol), McpError> {
        let mut connection = self.connection.lock().await;
        let mut protocol = self.protocol.lock().await;
        if let (Some(connection), Some(protocol)) = (&*connection, &*protocol)
            && !connection.is_closed()
        {
            return Ok((Arc::clone(connection), protocol.clone()));
        }
        *connection = None;
        let (started, negotiated) = match &*protocol {
            None => self.negotiate().await?,
            Some(Protocol::Stateless) => (self.start()?, Protocol::Stateless),
            Some(Protocol::Handshake(_)) => {
                let started = self.start()?;
                let negotiated = self.handshake(&started).await?;
                (started, negotiated)
            }
        };
        started.set_protocol(&negotiated);
        *connection = Some(Arc::clone(&started));
        *protocol = Some(negotiated.clone());
        Ok((started, negotiated))
    }

    /// Starts the server and determines its protocol. Newer servers support `server/discover`; older ones
    /// return an error, ignore it or exit.
    async fn negotiate(&self) -> Result<(Arc<Connection>, Protocol), McpError> {
        let connection = self.start()?;
        let start_timeout = self.settings.start_timeout;
        let probe_timeout = PROBE_TIMEOUT.min(start_timeout / 3);
        if self.is_stateless(&connection, probe_timeout).await {
            return Ok((connection, Protocol::Stateless));
        }
        // Some servers exit at a request before the handshake.
        let connection = if connection.is_closed() { self.start()? } else { connection };
        match self.handshake(&connection).await {
            Ok(negotiated) => Ok((connection, negotiated)),
            // The server may only have been slow to start, so it is probed again.
            Err(McpError::Response { .. })
                if self.is_stateless(&connection, start_timeout).await =>
            {
                Ok((connection, Protocol::Stateless))
            }
            Err(error) => Err(error),
        }
    }

    async fn is_stateless(&self, connection: &Connection, timeout: Duration) -> bool {
        connection.set_protocol(&Protocol::Stateless);
        let params = message::params(&Protocol::Stateless, "");
        let found = connection.request("server/discover", &params, timeout).await;
        match &found {
            Ok(found) => message::lists_stateless_version(found),
            Err(McpError::Response { data, .. }) => {
                data.as_deref().is_some_and(message::lists_stateless_version)
            }
            Err(_) => false,
        }
    }

    async fn handshake(&self, connection: &Connection) -> Result<Protocol, McpError> {
        connection.set_protocol(&Protocol::Handshake(message::HANDSHAKE_VERSION.into()));
        let timeout = self.settings.start_timeout;
        let result = connection.request("initialize", &message::initialize(), timeout).await?;
        let negotiated = Protocol::Handshake(message::negotiated_version(&result)?);
        connection.set_protocol(&negotiated);
        connection.notify("notifications/initialized").await?;
        Ok(negotiated)
    }

    /// All tools of the server, as it describes them.
    async fn list(&self) -> Result<Vec<message::ListedTool>, McpError> {
        let (connection, protocol) = self.connect().await?;
        let timeout = self.settings.start_timeout;
        let mut tools = Vec::new();
        let mut fields = String::new();
        for _ in 0..MAX_PAGES {
            let params = message::params(&protocol, &fields);
            let page = match connection.request("tools/list", &params, timeout).await {
                // A server without tools may not support the method.
                Err(McpError::Response { code: message::METHOD_NOT_FOUND, .. }) => {
                    return Ok(Vec::new());
                }
                page => message::ToolPage::parse(&page?)?,
            };
            tools.extend(page.tools);
            match page.next_cursor {
                Some(cursor) => fields = format!(r#""cursor":{}"#, crate::reply::quoted(&cursor)),
                None => return Ok(tools),
            }
        }
        Err(McpError::Invalid(format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    /// Calls a tool. `tool` is its name on the server, `input` a JSON object.
    async fn call(&self, tool: &str, input: &str) -> Result<message::ToolResult, McpError> {
        // The timeout includes the time to start the server.
        let timeout = self.settings.call_timeout;
        let calling = async {
            let (connection, protocol) = self.connect().await?;
            let params = message::call(&protocol, tool, input);
            let result = connection.request("tools/call", &params, timeout).await?;
            message::ToolResult::parse(&result)
        };
        let called = tokio::time::timeout(timeout, calling).await;
        let called = called.unwrap_or(Err(McpError::Timeout(timeout)));
        called.map_err(|error| error.redacted(&self.secrets))
    }
}
