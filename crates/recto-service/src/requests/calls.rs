//! `{"conversation": NAME, "calls": true}`

use std::collections::BTreeMap;

use recto_agent::{Calibration, Call, ConversationExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Perform, Service, TrueOr, schema};

/// Lists the model calls of a conversation, newest first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Calls {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`, or options.
    pub calls: TrueOr<CallsOptions>,
}

/// Options of `calls`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallsOptions {
    /// The largest number of calls. Default: 50.
    pub limit: Option<u64>,
}

/// The calls of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallList {
    /// The conversation's name.
    pub conversation: String,
    /// The call manifests, newest first.
    #[schemars(with = "Vec<schema::Call>")]
    pub calls: Vec<Call>,
    /// The number of older calls, which are not listed.
    pub older: usize,
    /// The calibration of each model: the ratio of its tokens to the tokens that the conversation counts.
    pub models: Vec<ModelTokens>,
}

/// The calibration of a model: the ratio of its tokens to the tokens that the conversation counts, computed
/// from the usage that the provider reports.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelTokens {
    /// The model.
    pub model: String,
    /// Tokens of the model per token of the conversation's counter.
    pub factor: f64,
    /// The moving average of the relative error of the expected tokens. `null` before the second report.
    pub error: Option<f64>,
    /// The number of calls whose reported usage is part of `factor`.
    pub reports: u64,
}

impl ModelTokens {
    /// The calibration of each model, sorted by name. Calls for a summary are left out, and so are models
    /// without a report that was used.
    fn of(calls: &[Call]) -> Vec<ModelTokens> {
        let mut models: BTreeMap<&str, Calibration> = BTreeMap::new();
        for call in calls.iter().filter(|call| call.summary_prompt.is_none()) {
            if let Some(usage) = call.usage {
                models.entry(&call.model).or_default().learn(call.counted, usage.input);
            }
        }
        let known = |(model, known): (&str, Calibration)| ModelTokens {
            model: model.to_owned(),
            factor: known.factor,
            error: known.error,
            reports: known.reports,
        };
        models.into_iter().map(known).filter(|known| known.reports > 0).collect()
    }
}

impl Perform for Calls {
    type Response = CallList;

    async fn perform(self, service: &Service) -> Result<CallList, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let mut calls = conversation.handle.calls().await?;
        let models = ModelTokens::of(&calls);
        let limit = usize::try_from(self.calls.0.limit.unwrap_or(50)).unwrap_or(usize::MAX);
        let older = calls.len().saturating_sub(limit);
        calls.drain(..older);
        calls.reverse();
        Ok(CallList { conversation: conversation.name, calls, older, models })
    }
}
