//! Batches that were handed in before: by their ids, or where the provider did not say that it took one, by what it was
//! given.

use std::time::Duration;

use bytes::Bytes;
use futures::TryFutureExt;
use http::Response;

use super::outcome::Outcome;
use super::{Answers, BatchApi, BatchClient, identifier, parsed};

/// What stands in place of a batch's id until the provider said that it took it, before the id of the file of its calls.
pub(super) const UPLOADED: &str = "uploaded:";

impl BatchClient {
    /// Waits for a batch that was handed in before, as it was noted last.
    pub(super) async fn wait_again(&self, api: &BatchApi, name: &str, calls: usize) -> Answers {
        let Some(file) = name.strip_prefix(UPLOADED) else {
            return self.wait(api, name, calls, Duration::ZERO).await;
        };
        let find = || self.batch_of(api, file).map_ok(Some);
        match self.insist(api, name, Duration::ZERO, find).await {
            Ok(Some(id)) => self.wait(api, &id, calls, Duration::ZERO).await,
            // Nobody took it: nothing of it is paid for.
            Ok(None) => Answers::none(Response::new(Bytes::new()).into(), true),
            Err(refusal) => Answers::none(refusal.of(name), false),
        }
    }

    /// The id of the batch whose calls came in a file, if `OpenAI` took it.
    async fn batch_of(&self, api: &BatchApi, file: &str) -> Result<Option<String>, Outcome> {
        let mut after = String::new();
        loop {
            let page = parsed(&self.get(api, &format!("/batches?limit=100{after}")).await?);
            let Some(batches) = page["data"].as_array() else {
                return Err(Outcome::Unsent("the reply lists no batches".to_owned()));
            };
            if let Some(batch) = batches.iter().find(|batch| batch["input_file_id"] == file) {
                return identifier(&batch["id"]).map(Some);
            }
            match batches.last() {
                Some(last) if page["has_more"] == true => {
                    after = format!("&after={}", identifier(&last["id"])?);
                }
                _ => return Ok(None),
            }
        }
    }
}
