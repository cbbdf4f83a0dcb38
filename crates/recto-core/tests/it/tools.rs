//! Tools, and the tool description of a conversation.

use recto_core::{Approx, Clear, Conversation, Message, Settings, Tool};

use crate::driver::reloaded;

#[test]
fn a_tool_is_kept_byte_for_byte() {
    let json =
        r#"{"name":"f","description":"d","n":123456789012345678901234567890,"x":[1e400,"\ud800"]}"#;
    let tools = Tool::list_from_json(&format!("[{json}]")).expect("it is a tool");
    assert_eq!(tools[0].json(), json);
    let settings = Settings { tools, ..Settings::counting_with(Approx) };
    let conversation = Conversation::new(settings, 0).expect("the settings are valid");
    let loaded = reloaded(&conversation);
    assert_eq!(loaded.tools().expect("it has tools").tools()[0].json(), json);
}

#[test]
fn an_empty_heading_is_refused() {
    let tools = vec![Tool::new("f", "does it")];
    let settings = Settings { tools, heading: String::new(), ..Settings::counting_with(Approx) };
    let error = Conversation::new(settings, 0).expect_err("the heading is empty");
    assert_eq!(error.code().as_str(), "invalid_operation");
    assert_eq!(error.field().as_deref(), Some("heading"));
}

#[test]
fn clear_keeps_other_system_messages_beside_the_tool_description() {
    let settings =
        Settings { tools: vec![Tool::new("f", "does it")], ..Settings::counting_with(Approx) };
    let start = Conversation::new(settings, 0).expect("the settings are valid");
    let (conversation, _) =
        start.append([Message::system("You are a pilot.")], 1).expect("accepted");
    let (cleared, _) = conversation.apply(Clear::default(), 2).expect("accepted");
    assert_eq!(cleared.view().len(), 2);
}
