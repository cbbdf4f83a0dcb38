//! Names that are not allowed, in every function that takes a new name.

use recto::Version;

use super::{say, settings};
use crate::places::{Place, on_every_store, sqlite};

on_every_store! {
    every_function_refuses_a_name_with_another_meaning
    a_conversation_of_a_backup_whose_name_is_not_allowed_gets_another_one
}

async fn every_function_refuses_a_name_with_another_meaning(place: Place) {
    let recto = place.recto();
    let kept = recto.create("kept", settings()).await.unwrap();
    kept.append([say(0)]).await.unwrap();
    let id = kept.id().to_string();
    for name in ["", &"x".repeat(513), "@", &id, &id.to_uppercase(), "\u{1}removed x", "\tx"] {
        for refused in [
            recto.create(name, settings()).await.map(drop),
            recto.create_with_messages(name, settings(), &[say(0)]).await.map(drop),
            recto.conversation_or_create(name, settings()).await.map(drop),
            kept.fork(name, Version(1)).await.map(drop),
            recto.rename("kept", name).await,
        ] {
            assert_eq!(refused.unwrap_err().code(), "invalid_operation", "{name:?}");
        }
        #[cfg(feature = "format")]
        {
            let transcript = br#"[{"role":"user","content":"2 + 2?"}]"#.to_vec();
            let naming = recto::ImportName::Exactly(name.to_owned());
            let options = recto::ImportOptions::new(naming, settings());
            let refused = recto.import(transcript, options).await.unwrap_err();
            assert_eq!(refused.code(), "invalid_operation", "{name:?}");
        }
    }
    let names = recto.list(None, 10).await.unwrap();
    assert_eq!(names.iter().map(|info| &*info.name).collect::<Vec<_>>(), ["kept"]);
}

async fn a_conversation_of_a_backup_whose_name_is_not_allowed_gets_another_one(place: Place) {
    let recto = place.recto();
    let id = recto.create("a", settings()).await.unwrap().id();
    recto.conversation("a").await.unwrap().append([say(0)]).await.unwrap();
    recto.create("b", settings()).await.unwrap().append([say(1)]).await.unwrap();
    // Earlier releases allowed the name.
    recto.store().rename(&Default::default(), "a", "@").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    let fresh = sqlite().await;
    let fresh = fresh.recto();
    let restored = fresh.restore(&path).await.unwrap();
    assert_eq!(restored.conversations, 2);
    let to = format!("restored {id}");
    let renamed: Vec<_> = restored.renamed.iter().map(|it| (&*it.from, &*it.to)).collect();
    assert_eq!(renamed, [("@", &*to)]);
    assert_eq!(fresh.conversation(&to).await.unwrap().messages().await.unwrap().len(), 1);
    let names = fresh.list(None, 10).await.unwrap();
    assert_eq!(names.iter().map(|info| &*info.name).collect::<Vec<_>>(), ["b", &*to]);
    // A repeated restoration finds it.
    let again = fresh.restore(&path).await.unwrap();
    assert_eq!((again.conversations, again.already_there), (0, 2));
}

/// A changed letter in the index hides the name, and the table still has it.
#[tokio::test]
async fn a_name_that_the_index_of_names_lacks_is_not_given_to_another_conversation() {
    let source = sqlite().await;
    for name in ["kept-name", "other"] {
        source.recto().create(name, settings()).await.unwrap().append([say(1)]).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    source.recto().backup(&path).await.unwrap();
    let page = "SELECT (pageno - 1) * pgsize FROM dbstat
                WHERE name = 'sqlite_autoindex_conversations_2'";
    let db = rusqlite::Connection::open(&path).unwrap();
    let page: u32 = db.query_row(page, [], |row| row.get(0)).unwrap();
    let page = page as usize;
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    let found = bytes[page..].windows(9).position(|found| found == b"kept-name").unwrap();
    bytes[page + found] -= 1;
    std::fs::write(&path, bytes).unwrap();

    let recto = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
    let other = recto.conversation("other").await.unwrap();
    for refused in [
        recto.create("kept-name", settings()).await.map(drop),
        other.fork("kept-name", recto::Version(1)).await.map(drop),
        recto.rename("other", "kept-name").await,
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), "storage");
        assert!(refused.to_string().contains("an index of the file does not contain it"));
    }
    recto.clean().await.unwrap();
    assert_eq!(recto.check().await.unwrap(), Vec::<String>::new());
    let taken = recto.create("kept-name", settings()).await.unwrap_err();
    assert_eq!(taken.code(), "conversation_exists");
    recto.create("new", settings()).await.unwrap();
    assert_eq!(recto.list(None, 9).await.unwrap().len(), 3);
}
