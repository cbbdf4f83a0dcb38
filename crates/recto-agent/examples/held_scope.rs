//! Holds a temporary scope until it is killed, for the tests: `held_scope STORE CONVERSATION SECONDS`.

#![allow(clippy::print_stdout, reason = "the test waits for it")]

use std::time::Duration;

use recto::{Message, Recto, Temporary};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, name, seconds] = &arguments[..] else {
        return Err("held_scope STORE CONVERSATION SECONDS".into());
    };
    let conversation = Recto::open(store).await?.conversation(name).await?;
    let lease = Duration::try_from_secs_f64(seconds.parse()?)?;
    conversation
        .with_temporary(Temporary { lease, ..Temporary::default() }, async {
            conversation.append([Message::user("a secret")]).await?;
            println!("inside");
            std::future::pending::<()>().await;
            Ok::<(), recto::Error>(())
        })
        .await??;
    Ok(())
}
