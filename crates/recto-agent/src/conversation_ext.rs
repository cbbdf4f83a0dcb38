//! [`ConversationExt`]: the methods that this crate adds to a stored conversation.

use std::future::Future;

use recto::{Conversation, LogIndex, Outcome, Request};

use crate::{Call, Error, SummaryGap, calls, summaries, workflow};

/// Methods that this crate adds to a stored conversation: its calls, its summaries, and the steps of
/// a workflow. Import the trait to use them.
pub trait ConversationExt: sealed::Sealed {
    /// All calls of the conversation, oldest first. Calls that were rolled back are included.
    fn calls(&self) -> impl Future<Output = Result<Vec<Call>, Error>> + Send;

    /// The call with this number. Numbers start at 1.
    fn call(&self, number: u64) -> impl Future<Output = Result<Call, Error>> + Send;

    /// The request body of call `number`, rendered again and checked against the SHA-256 in its
    /// manifest.
    fn request_of_call(&self, number: u64) -> impl Future<Output = Result<String, Error>> + Send;

    /// Applies a request that is written as JSON, in any of the three input forms of the contract. One of them
    /// is the form of a context-processor node of a workflow.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Message, Recto, Settings};
    /// use recto_agent::ConversationExt as _;
    ///
    /// let step = Recto::open("memory:").await?.create("step", Settings::default()).await?;
    /// step.append(["one", "two", "three"].map(Message::user)).await?;
    /// step.apply_json(r#"{"operation": "truncate", "truncate": {"keepLast": 1}}"#).await?;
    /// assert_eq!(step.messages().await?.len(), 1);
    /// # Ok::<(), recto_agent::Error>(())
    /// # }).unwrap();
    /// ```
    fn apply_json(&self, request: &str) -> impl Future<Output = Result<Outcome, Error>> + Send;

    /// Appends the result of a child conversation. `selection` is applied to the child's view without
    /// changing the child; the messages that remain visible are appended to this conversation. Returns
    /// `None` if no message remains.
    ///
    /// Manifests of calls stay with the child: `metadata.handedBack` of an appended message names the
    /// child and the number of the call.
    ///
    /// The example compresses a conversation: a child receives the old messages and writes a summary,
    /// and only the summary is appended to the parent.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Message, Recto, Settings, Truncate};
    /// use recto_agent::ConversationExt as _;
    ///
    /// let recto = Recto::open("memory:").await?;
    /// let parent = recto.create("parent", Settings::default()).await?;
    /// parent.append([Message::user("Book a flight."), Message::assistant("Which day?")]).await?;
    ///
    /// // In practice an `Agent` on the child writes this message.
    /// let child = parent.fork("summary", parent.version().await?).await?;
    /// child.append([Message::assistant("The user wants a flight; the day is open.")]).await?;
    ///
    /// parent.apply_json(r#"{"operation": "clear"}"#).await?;
    /// parent.append_from_child(&child, Truncate::keep_last(1)).await?;
    /// let view = parent.messages().await?;
    /// assert_eq!(view.len(), 1);
    /// assert_eq!(view[0].message.text(), "The user wants a flight; the day is open.");
    /// # Ok::<(), recto_agent::Error>(())
    /// # }).unwrap();
    /// ```
    fn append_from_child(
        &self,
        child: &Conversation,
        selection: impl Into<Request> + Send,
    ) -> impl Future<Output = Result<Option<Outcome>, Error>> + Send;

    /// The messages that a summary replaces. Summaries of summaries are resolved to the original
    /// messages.
    fn summary_sources(
        &self,
        summary: LogIndex,
    ) -> impl Future<Output = Result<Vec<LogIndex>, Error>> + Send;

    /// Restores the messages that a summary replaces, each at its position, and hides the summary. It
    /// is one request, so one UNDO reverts it.
    fn expand_summary(
        &self,
        summary: LogIndex,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send;

    /// Entries that were hidden by a version that added a summary, and that no summary of this version lists.
    /// Empty if the summaries of each version list everything that the version hid. A version that added no
    /// summary is not examined.
    fn summary_gaps(&self) -> impl Future<Output = Result<Vec<SummaryGap>, Error>> + Send;
}

impl ConversationExt for Conversation {
    async fn calls(&self) -> Result<Vec<Call>, Error> {
        calls::calls(self).await
    }

    async fn call(&self, number: u64) -> Result<Call, Error> {
        calls::call(self, number).await
    }

    async fn request_of_call(&self, number: u64) -> Result<String, Error> {
        calls::request_of_call(self, number).await
    }

    async fn apply_json(&self, request: &str) -> Result<Outcome, Error> {
        Ok(self.apply(Request::from_json(request)?).await?)
    }

    async fn append_from_child(
        &self,
        child: &Conversation,
        selection: impl Into<Request> + Send,
    ) -> Result<Option<Outcome>, Error> {
        workflow::append_from_child(self, child, selection.into()).await
    }

    async fn summary_sources(&self, summary: LogIndex) -> Result<Vec<LogIndex>, Error> {
        summaries::sources(self, summary).await
    }

    async fn expand_summary(&self, summary: LogIndex) -> Result<Outcome, Error> {
        summaries::expand(self, summary).await
    }

    async fn summary_gaps(&self) -> Result<Vec<SummaryGap>, Error> {
        summaries::gaps(self).await
    }
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for recto::Conversation {}
}
