//! `{"fit": [MESSAGE, …], "maxTokens": N}`, `{"repair": [MESSAGE, …], "for": PROVIDER}` and
//! `{"countTokens": [MESSAGE, …]}`: requests about a list of messages that is not stored. `recto-lists` has
//! them, because they are also compiled to WebAssembly.

pub use recto_lists::{
    CountTokens, FitList, FittedList, FittedMessage, ListRepair, RepairList, TokenCount,
};

use crate::{Error, Perform, Service};

impl Perform for FitList<'_> {
    type Response = FittedList;

    async fn perform(self, _: &Service) -> Result<FittedList, Error> {
        Ok(self.compute()?)
    }
}

impl Perform for RepairList<'_> {
    type Response = FittedList;

    async fn perform(self, _: &Service) -> Result<FittedList, Error> {
        Ok(self.compute()?)
    }
}

impl Perform for CountTokens<'_> {
    type Response = TokenCount;

    async fn perform(self, _: &Service) -> Result<TokenCount, Error> {
        Ok(self.compute()?)
    }
}
