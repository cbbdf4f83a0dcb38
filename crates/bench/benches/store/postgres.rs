//! Durable appends of single messages to PostgreSQL, without and with a search index, compared with bare
//! transactions that insert one row with the same driver. Each round measures all three.

use recto::{Message, Options, Recto, Settings};
use testserver::PostgresServer;
use tokio_postgres::{Client, NoTls, Statement};

use crate::appends::{A_ROUND, ROUNDS, Rates, append_all, warm};
use crate::bench::{Bench, messages, note};
use crate::table::{Bar, Table};

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    table.part("Durable appends of one message to PostgreSQL");
    let rounds = bench.rounds(ROUNDS);
    let run: Vec<Message> = messages(A_ROUND * rounds).collect();
    let address = PostgresServer::shared().database();
    let runtime = &bench.runtime;
    let bare = runtime.block_on(Bare::new(&address));
    let (one, found) = runtime.block_on(async {
        let options = Options { search: false, ..Options::default() };
        let plain = Recto::open_with(&address, options).await.expect("the server is there");
        let one = warm(&plain, "one", Settings::default()).await;
        let address = PostgresServer::shared().database();
        let searched = Recto::open(&address).await.expect("the server is there");
        (one, warm(&searched, "one", Settings::default()).await)
    });
    let [mut bare_rates, mut single, mut with_search]: [Rates; 3] = Default::default();
    for (round, messages) in run.chunks(A_ROUND).enumerate() {
        note(&format!("postgres: round {} of {rounds}", round + 1));
        bare_rates.take(A_ROUND, || {
            runtime.block_on(async {
                for message in messages {
                    bare.append(message.json()).await;
                }
            });
        });
        single.take(A_ROUND, || runtime.block_on(append_all(&one, messages)));
        with_search.take(A_ROUND, || runtime.block_on(append_all(&found, messages)));
    }
    let what = "bare transaction";
    table.row(single.row("one writer", what, &bare_rates).bar(Bar::AtLeast(0.6)));
    table.row(with_search.row("  with search index", what, &bare_rates));
}

struct Bare {
    client: Client,
    insert: Statement,
}

impl Bare {
    async fn new(address: &str) -> Bare {
        let connected = tokio_postgres::connect(address, NoTls).await;
        let (client, connection) = connected.expect("the server is there");
        tokio::spawn(connection);
        let table = "CREATE TABLE bare (number bigserial PRIMARY KEY, body bytea NOT NULL)";
        client.batch_execute(table).await.expect("the database is new");
        let insert = client.prepare("INSERT INTO bare (body) VALUES ($1)").await;
        Bare { client, insert: insert.expect("the table is there") }
    }

    async fn append(&self, json: &str) {
        let row = self.client.execute(&self.insert, &[&json.as_bytes()]).await;
        row.expect("there is no other writer");
    }
}
