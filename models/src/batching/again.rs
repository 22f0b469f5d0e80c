//! Batches that were handed in before: by their ids, or where the provider did not say that it took one, by what it was
//! given.

use std::time::Duration;

use bytes::Bytes;
use futures::TryFutureExt;
use http::Response;
use serde_json::Value;

use super::outcome::{AFTER, Outcome, UPLOADED};
use super::{Answers, BatchApi, BatchClient, identifier, lock, parsed};
use crate::time;

impl BatchClient {
    /// What stands in place of the id of a batch that Anthropic is about to be given; nothing where a gateway in front of it
    /// lists no batches.
    pub(super) async fn name_after_latest(
        &self,
        api: &BatchApi,
        call: &str,
    ) -> Result<Option<String>, Outcome> {
        let page = match self.get(api, "/batches?limit=1").await {
            Err(Outcome::Said(said)) if matches!(said.status().as_u16(), 403 | 404 | 405 | 501) => {
                return Ok(None);
            }
            page => parsed(&page?),
        };
        let latest = listed(&page)?.first().map(|batch| identifier(&batch["id"]));
        let latest = latest.transpose()?.unwrap_or_default();
        // The same call may stand behind the same batch twice.
        let moment = time::since_epoch().as_nanos();
        Ok(Some(format!("{AFTER}{latest}:{call}:{moment:x}")))
    }

    /// Waits for a batch that was handed in before, as it was noted last.
    pub(super) async fn wait_again(&self, api: &BatchApi, name: &str, calls: usize) -> Answers {
        let mut call = None;
        let found = if let Some(file) = name.strip_prefix(UPLOADED) {
            let find = || self.made_of(api, file).map_ok(Some);
            self.insist(api, name, Duration::ZERO, find).await
        } else if let Some(place) = name.strip_prefix(AFTER) {
            let mut parts = place.split(':');
            let latest = parts.next().unwrap_or_default();
            call = parts.next();
            let find = || self.taken_after(api, latest, calls).map_ok(Some);
            self.insist(api, name, Duration::ZERO, find).await
        } else {
            Ok(vec![name.to_owned()])
        };
        let found = match found {
            Ok(found) => found,
            Err(refusal) => return Answers::none(refusal.of(name), false),
        };
        for id in found {
            let watched = self.watch(api, &id, calls, Duration::ZERO).await;
            if call.is_some() && watched.as_ref().is_err_and(Outcome::is_gone) {
                continue;
            }
            let answers = watched.unwrap_or_else(|refusal| Answers::none(refusal.of(&id), false));
            // What does not answer the call is somebody else's.
            let is_it = call.is_none_or(|call| lock(&answers.given).contains_key(call));
            if is_it || !answers.has_ended {
                return answers;
            }
        }
        // Nobody took it: nothing of it is paid for.
        Answers::none(Response::new(Bytes::new()).into(), true)
    }

    /// The id of the batch whose calls came in a file, if `OpenAI` took it.
    async fn made_of(&self, api: &BatchApi, file: &str) -> Result<Vec<String>, Outcome> {
        let batches = self.list_until(api, ("input_file_id", file)).await?;
        let made_of_it = batches.iter().filter(|batch| batch["input_file_id"] == file);
        made_of_it.map(|batch| identifier(&batch["id"])).collect()
    }

    /// The ids of the batches of so many calls that Anthropic took after another one, without those that are known. The
    /// first that it took is the likeliest.
    async fn taken_after(&self, api: &BatchApi, latest: &str, calls: usize) -> Result<Vec<String>, Outcome> {
        let mut batches = self.list_until(api, ("id", latest)).await?;
        batches.pop_if(|last| last["id"] == latest);
        let has_as_many = |batch: &&Value| {
            let counts = batch["request_counts"].as_object().into_iter().flatten();
            counts.filter_map(|(_, count)| count.as_u64()).sum::<u64>() == calls as u64
        };
        let of_as_many = batches.iter().rev().filter(has_as_many);
        let ids = of_as_many.map(|batch| identifier(&batch["id"]));
        let is_unknown = |id: &Result<String, Outcome>| !id.as_ref().is_ok_and(|id| self.batches.knows(id));
        ids.filter(is_unknown).collect()
    }

    /// The batches in the provider's list, the latest first, up to the first whose `field` is `value`, with that.
    async fn list_until(&self, api: &BatchApi, (field, value): (&str, &str)) -> Result<Vec<Value>, Outcome> {
        let cursor = if api.is_anthropic { "after_id" } else { "after" };
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let page = parsed(&self.get(api, &format!("/batches?limit=100{after}")).await?);
            let batches = listed(&page)?;
            if let Some(last) = batches.iter().position(|batch| batch[field] == value) {
                all.extend_from_slice(&batches[..=last]);
                return Ok(all);
            }
            all.extend_from_slice(batches);
            match batches.last() {
                Some(last) if page["has_more"] == true => {
                    after = format!("&{cursor}={}", identifier(&last["id"])?);
                }
                _ => return Ok(all),
            }
        }
    }
}

/// The batches on a page of a provider's list.
fn listed(page: &Value) -> Result<&[Value], Outcome> {
    let batches = page["data"].as_array().map(Vec::as_slice);
    batches.ok_or_else(|| Outcome::Unsent("the reply lists no batches".to_owned()))
}
