//! `{"conversation": NAME, "cachePlan": {"from": VERSION, "to": VERSION}}`

use recto_format::PriceTable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::value::RawValue;

use crate::Provider;
use crate::error::InField as _;
use crate::{At, Error, Perform, Plan, PlanOptions, ProviderView, Service, schema};

/// Computes the prompt-cache cost of an edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CachePlan<'a> {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// The versions before and after the edit, and the provider.
    #[serde(borrow, deserialize_with = "crate::values::object")]
    pub cache_plan: CachePlanOptions<'a>,
}

/// Options of `cachePlan`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CachePlanOptions<'a> {
    /// The version before the edit.
    pub from: At,
    /// The version after the edit. Default: the newest.
    pub to: Option<At>,
    /// The provider. Default: the one that the messages come from, else `anthropic`.
    #[serde(rename = "for")]
    pub target: Option<Provider>,
    /// The model whose prices are used. Default: the one that wrote the newest message, if its name starts
    /// with the family of the provider (`claude`, `gpt` or `gemini`), else a common model of that family.
    pub model: Option<String>,
    /// The version of the provider's API, such as `2026-10-21` at Anthropic. Default: the oldest.
    pub api_version: Option<String>,
    /// Prices of models, in the form of Recto's own table or of LiteLLM's
    /// `model_prices_and_context_window.json`. Default: Recto's own table.
    #[serde(borrow)]
    #[schemars(with = "Option<schema::Prices>")]
    pub prices: Option<&'a RawValue>,
    /// A number of turns. If it is given and the prices are known, the response has the savings over these
    /// turns.
    pub turns: Option<u64>,
}

/// The prompt-cache cost of an edit.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PlannedEdit {
    /// The conversation's name.
    pub conversation: String,
    /// The version before the edit.
    pub from: u32,
    /// The version after the edit.
    pub to: u32,
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
}

impl Perform for CachePlan<'_> {
    type Response = PlannedEdit;

    async fn perform(self, service: &Service) -> Result<PlannedEdit, Error> {
        let CachePlanOptions { from, to, target, model, api_version, prices, turns } =
            self.cache_plan;
        let prices = prices.map(|table| PriceTable::from_json(table.get())).transpose()?;
        let plan =
            PlanOptions { target: target.map(|target| target.0), model, api_version, prices };
        let conversation = service.conversation(&self.conversation).await?;
        let handle = &conversation.handle;
        let to = match to {
            Some(At(version)) => version,
            None => handle.version().await?,
        };
        let before = ProviderView::at(handle, from.0).await.in_field("cachePlan.from")?;
        let after = ProviderView::at(handle, to).await.in_field("cachePlan.to")?;
        let plan = plan.compare(&before, &after, &handle.settings().await?.counter)?;
        Ok(PlannedEdit {
            conversation: conversation.name,
            from: before.version.0,
            to: after.version.0,
            plan: match turns {
                Some(turns) => plan.over(turns),
                None => plan,
            },
        })
    }
}
