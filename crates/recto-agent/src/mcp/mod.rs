//! Servers of the Model Context Protocol: their tools are tools of an agent.
//!
//! ```text
//! McpServer ──► start, agree on a version ──► tools/list ──► McpTool, McpTool, …
//!                 │                                             │ run
//!                 └── Link: a process (process.rs)              ▼
//!                     or HTTP (web.rs)          tools/call ──► its text, or why there is none
//! ```
//!
//! The client is thin, since nothing may be lost on the way: a tool's schema and the input that the
//! model wrote go through as text. `wire.rs` knows how messages look, in both eras of the protocol:
//! with a handshake (until 2025-11-25) and without one (from 2026-07-28 on).
//!
//! Whatever a server does, a call ends with an output: it dies, is late, refuses, prints rubbish. One
//! that has died is started again by the next call. A call is never repeated, since it may have done
//! something.

mod process;
mod tool;
mod web;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use self::process::ProcessLink;
use self::web::WebLink;
use self::wire::{Era, Fault};
use crate::secrets::{Secrets, shown};
use crate::{Error, Secret};

pub use self::tool::McpTool;

/// How long a server may think about a question that only newer ones know.
const PROBE: Duration = Duration::from_secs(3);
/// A server that lists more pages of tools than this goes round in circles.
const MOST_PAGES: usize = 100;

/// A server of the Model Context Protocol, and how it is reached.
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
pub struct McpServer {
    /// What it is called here. Its tools are `NAME__TOOL`, so that those of two servers do not mix.
    pub name: String,
    /// How it is reached.
    pub at: McpAddress,
    /// How long it may take to start, and to list its tools.
    pub start: Duration,
    /// How long a call may take.
    pub patience: Duration,
    /// How many bytes of a result are kept; the middle is left out.
    pub longest_output: usize,
    /// The most bytes that a message of the server may have.
    pub longest_message: usize,
}

/// How a server is reached.
#[derive(Clone)]
#[non_exhaustive]
pub enum McpAddress {
    /// A program that is started, and spoken to on its standard input and output.
    Program {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Variables of its environment. Of ours it gets only what every program needs, such as
        /// `PATH` and `HOME`: keys of others are none of its business.
        variables: Vec<(String, Secret)>,
    },
    /// A server that runs already, at a URL (streamable HTTP).
    Url {
        /// Where.
        url: String,
        /// Headers of every request, such as `authorization`.
        headers: Vec<(String, Secret)>,
    },
}

impl fmt::Debug for McpAddress {
    /// Without anything secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            McpAddress::Program { program, arguments, .. } => {
                f.debug_tuple("Program").field(program).field(arguments).finish()
            }
            McpAddress::Url { url, .. } => f.debug_tuple("Url").field(&shown(url)).finish(),
        }
    }
}

impl McpAddress {
    fn secrets(&self) -> Secrets {
        match self {
            McpAddress::Program { variables, .. } => {
                // Most variables are no secrets; short ones are switches.
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
    /// A program, with half a minute to start, a minute for a call, and at most 64 KiB of output.
    pub fn program(name: impl Into<String>, program: impl Into<String>) -> McpServer {
        let (arguments, variables) = (Vec::new(), Vec::new());
        McpServer::at(name, McpAddress::Program { program: program.into(), arguments, variables })
    }

    /// A server at a URL, with the same limits.
    pub fn url(name: impl Into<String>, url: impl Into<String>) -> McpServer {
        McpServer::at(name, McpAddress::Url { url: url.into(), headers: Vec::new() })
    }

    fn at(name: impl Into<String>, at: McpAddress) -> McpServer {
        McpServer {
            name: name.into(),
            at,
            start: Duration::from_secs(30),
            patience: Duration::from_secs(60),
            longest_output: 64 << 10,
            longest_message: 16 << 20,
        }
    }

    /// With arguments, if it is a program.
    pub fn arguments<T: Into<String>>(mut self, given: impl IntoIterator<Item = T>) -> McpServer {
        if let McpAddress::Program { arguments, .. } = &mut self.at {
            arguments.extend(given.into_iter().map(Into::into));
        }
        self
    }

    /// With a variable, if it is a program. Its value is not shown anywhere.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> McpServer {
        if let McpAddress::Program { variables, .. } = &mut self.at {
            variables.push((name.into(), Secret::new(value)));
        }
        self
    }

    /// With a header, if it is at a URL. Its value is not shown anywhere.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> McpServer {
        if let McpAddress::Url { headers, .. } = &mut self.at {
            headers.push((name.into(), Secret::new(value)));
        }
        self
    }

    /// Starts the server, and asks it for its tools; it may have none. It runs as long as one of them
    /// is there.
    pub async fn tools(self) -> Result<Vec<McpTool>, Error> {
        Ok(self.tools_and_remarks().await?.0)
    }

    /// The same, and what is to be said of tools that cannot be offered to a model: they are left out.
    pub async fn tools_and_remarks(self) -> Result<(Vec<McpTool>, Vec<String>), Error> {
        let secrets = self.at.secrets();
        let (link, era) = (Mutex::new(None), Mutex::new(None));
        let server = Arc::new(Server { about: self, secrets, link, era });
        let limit = server.about.start;
        let listed = tokio::time::timeout(limit, server.list()).await;
        let listed = listed.unwrap_or(Err(Fault::Late(limit)));
        let listed = listed.map_err(|fault| Error::McpServer {
            name: server.about.name.clone(),
            reason: fault.without(&server.secrets).to_string(),
        })?;
        Ok(McpTool::all(&server, &listed))
    }
}

/// A server that was started, and is started again if it has died.
#[derive(Debug)]
struct Server {
    about: McpServer,
    secrets: Secrets,
    link: Mutex<Option<Arc<Link>>>,
    /// What it was found to speak.
    era: Mutex<Option<Era>>,
}

/// A way to a server.
#[derive(Debug)]
enum Link {
    Process(ProcessLink),
    Web(WebLink),
}

impl Link {
    fn is_over(&self) -> bool {
        match self {
            Link::Process(link) => link.is_over(),
            Link::Web(link) => link.is_over(),
        }
    }

    /// Asks something; `params` is a JSON object in one line.
    async fn ask(&self, method: &str, params: &str, patience: Duration) -> Result<String, Fault> {
        match self {
            Link::Process(link) => link.ask(method, params, patience).await,
            Link::Web(link) => link.ask(method, params, patience).await,
        }
    }

    async fn notify(&self, method: &str) -> Result<(), Fault> {
        match self {
            Link::Process(link) => link.notify(method),
            Link::Web(link) => link.notify(method).await,
        }
    }

    /// From now on the server is known to speak this.
    fn agree(&self, era: &Era) {
        if let Link::Web(link) = self {
            link.agree(era);
        }
    }
}

impl Server {
    fn start(&self) -> Result<Arc<Link>, Fault> {
        Ok(Arc::new(match &self.about.at {
            McpAddress::Program { program, arguments, variables } => {
                let longest = self.about.longest_message;
                Link::Process(ProcessLink::start(program, arguments, variables, longest)?)
            }
            McpAddress::Url { url, headers } => {
                Link::Web(WebLink::new(url, headers, self.about.longest_message)?)
            }
        }))
    }

    /// A link that works, and what is spoken on it.
    async fn link(&self) -> Result<(Arc<Link>, Era), Fault> {
        let mut link = self.link.lock().await;
        let mut era = self.era.lock().await;
        if let (Some(link), Some(era)) = (&*link, &*era)
            && !link.is_over()
        {
            return Ok((Arc::clone(link), era.clone()));
        }
        *link = None;
        let (started, spoken) = match &*era {
            None => self.get_to_know().await?,
            Some(Era::Modern) => (self.start()?, Era::Modern),
            Some(Era::Handshake(_)) => {
                let started = self.start()?;
                let spoken = self.shake_hands(&started).await?;
                (started, spoken)
            }
        };
        started.agree(&spoken);
        *link = Some(Arc::clone(&started));
        *era = Some(spoken.clone());
        Ok((started, spoken))
    }

    /// Finds out what the server speaks: newer ones know `server/discover`, older ones do anything
    /// but answer it.
    async fn get_to_know(&self) -> Result<(Arc<Link>, Era), Fault> {
        let link = self.start()?;
        let probe = PROBE.min(self.about.start / 3);
        if self.is_modern(&link, probe).await {
            return Ok((link, Era::Modern));
        }
        // Some end at a question before the handshake.
        let link = if link.is_over() { self.start()? } else { link };
        match self.shake_hands(&link).await {
            Ok(spoken) => Ok((link, spoken)),
            // It may only have been slow to start.
            Err(Fault::Refused { .. }) if self.is_modern(&link, self.about.start).await => {
                Ok((link, Era::Modern))
            }
            Err(fault) => Err(fault),
        }
    }

    async fn is_modern(&self, link: &Link, patience: Duration) -> bool {
        link.agree(&Era::Modern);
        let found = link.ask("server/discover", &wire::params(&Era::Modern, ""), patience).await;
        match &found {
            Ok(found) => wire::speaks_modern(found),
            Err(Fault::Refused { data, .. }) => data.as_deref().is_some_and(wire::speaks_modern),
            Err(_) => false,
        }
    }

    async fn shake_hands(&self, link: &Link) -> Result<Era, Fault> {
        link.agree(&Era::Handshake(wire::HANDSHAKE_VERSION.into()));
        let answer = link.ask("initialize", &wire::initialize(), self.about.start).await?;
        let spoken = Era::Handshake(wire::version_of(&answer)?);
        link.agree(&spoken);
        link.notify("notifications/initialized").await?;
        Ok(spoken)
    }

    /// Every tool that the server has, as it describes them.
    async fn list(&self) -> Result<Vec<wire::Listed>, Fault> {
        let (link, era) = self.link().await?;
        let mut tools = Vec::new();
        let mut fields = String::new();
        for _ in 0..MOST_PAGES {
            let page = link.ask("tools/list", &wire::params(&era, &fields), self.about.start).await;
            let page = match page {
                // A server without tools need not know the question.
                Err(Fault::Refused { code: wire::NO_SUCH_METHOD, .. }) => return Ok(Vec::new()),
                page => wire::Page::read(&page?)?,
            };
            tools.extend(page.tools);
            match page.next {
                Some(cursor) => fields = format!(r#""cursor":{}"#, crate::answer::quoted(&cursor)),
                None => return Ok(tools),
            }
        }
        Err(Fault::Odd(format!("its list of tools has more than {MOST_PAGES} pages")))
    }

    /// Calls a tool by the name that the server knows; `input` is a JSON object.
    async fn call(&self, tool: &str, input: &str) -> Result<wire::Called, Fault> {
        // Whatever it takes to get there counts.
        let patience = self.about.patience;
        let calling = async {
            let (link, era) = self.link().await?;
            let params = wire::call(&era, tool, input);
            wire::Called::read(&link.ask("tools/call", &params, patience).await?)
        };
        let called = tokio::time::timeout(patience, calling).await;
        called.unwrap_or(Err(Fault::Late(patience))).map_err(|fault| fault.without(&self.secrets))
    }
}
