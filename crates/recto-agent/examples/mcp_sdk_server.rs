//! An MCP server made with the official SDK, for the tests: an independent implementation.
//!
//! `mcp_sdk_server` supports every protocol version of the SDK, `mcp_sdk_server handshake` only one with a
//! handshake.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};

#[derive(Clone)]
struct Sums {
    has_handshake: bool,
}

impl ServerHandler for Sums {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.has_handshake {
            true => Cow::Owned(vec![ProtocolVersion::V_2025_06_18]),
            false => Cow::Owned(ProtocolVersion::KNOWN_VERSIONS.to_vec()),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = serde_json::json!({"type": "object",
            "properties": {"numbers": {"type": "array", "items": {"type": "number"}}}});
        let schema = schema.as_object().cloned().unwrap_or_default();
        let tool = Tool::new("sum", "Adds numbers.", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let numbers = arguments.get("numbers").and_then(|numbers| numbers.as_array());
        let Some(numbers) = numbers else {
            return Err(ErrorData::invalid_params("numbers is a list", None));
        };
        // A call with an empty list waits until it is cancelled.
        if numbers.is_empty() {
            context.ct.cancelled().await;
        }
        let sum: f64 = numbers.iter().filter_map(|number| number.as_f64()).sum();
        Ok(CallToolResult::success(vec![ContentBlock::text(sum.to_string())]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let has_handshake = std::env::args().nth(1).as_deref() == Some("handshake");
    Sums { has_handshake }.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
