//! Shows the effect of writes before they happen.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::{Apply, Preview};
use super::api_client::ApiClient;
use super::apply_one::ApplyJob;
use super::failure::Failure;
use super::session::ClusterSession;
use crate::live::concurrency::each;

impl ClusterSession {
    /// Shows the effect of writes, with the data of Secrets hashed.
    pub async fn preview(&mut self, batch: &[Apply<'_>]) -> Vec<Option<Preview>> {
        let mut jobs = Vec::new();
        for (index, item) in batch.iter().enumerate() {
            if let Ok(path) = self.connection.path_of(item.desired) {
                jobs.push((index, self.job(item.desired, path)));
            }
        }
        let api = self.connection.acting();
        // Values from a Secret's override cannot be distinguished from others, so such an object has no preview.
        jobs.retain(|(_, job)| !job.secret || job.id.is_secret());
        let trials = jobs.iter().map(|(_, job)| try_one(job, &api));
        let tried = each(self.connection.at_once, trials).await;
        let mut previews: Vec<Option<Preview>> = batch.iter().map(|_| None).collect();
        for ((index, job), result) in jobs.into_iter().zip(tried) {
            // If a dry run is impossible now, the wanted form is shown.
            let (before, after) = result.unwrap_or_default();
            let after = after.unwrap_or_else(|| job.payload());
            let before = before.or(job.live);
            let secret = job.id.is_secret();
            previews[index] = Some(Preview {
                before: before.as_ref().map(|live| self.mask.masked(live, secret)),
                after: self.mask.masked(&after, secret),
            });
        }
        previews
    }
}

/// Returns an object before a write, and after it if a dry run is possible.
async fn try_one(job: &ApplyJob, api: &ApiClient) -> Result<(Option<Arc<Json>>, Option<Json>), Failure> {
    let before = match &job.live {
        None if job.is_older() => api.get(&job.path, &job.id.name).await?.map(Arc::new),
        live => live.clone(),
    };
    let after = match job.dry_run_once(api).await {
        Ok(brought) => brought.answer.map(|answer| answer.read()).transpose()?,
        Err(_) => None,
    };
    Ok((before, after))
}
