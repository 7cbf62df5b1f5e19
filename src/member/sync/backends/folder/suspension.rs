//! A folder's suspension: a file beside the inventory, `.berth/suspended.json`.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::files::Root;
use crate::sync::backends::BackendError;
use crate::sync::suspension;
use berth_base::model::Timestamp;
use berth_base::model::status::Suspension;

const FILE: &str = ".berth/suspended.json";

/// Reads the suspension, unless it has ended. An unreadable file suspends too.
pub(super) fn read(root: &Root, now: Timestamp) -> Option<Suspension> {
    let unreadable = || Suspension { reason: format!("`{FILE}` cannot be read"), until: None };
    let bytes = match root.read(FILE) {
        Ok(bytes) => bytes?,
        Err(_) => return Some(unreadable()),
    };
    let Ok(form) = serde_json::from_slice::<Json>(&bytes) else { return Some(unreadable()) };
    let text = |key: &str| form.get(key).and_then(Json::as_str);
    suspension::read(text("reason").or(Some("")), text("until"), now)
}

/// Suspends or resumes a folder. Returns true if it was suspended before.
pub fn suspend(folder: &Path, suspension: Option<&Suspension>) -> Result<bool, BackendError> {
    let mut root = Root::new(folder)?;
    let was = root.read(FILE)?.is_some();
    match suspension {
        Some(suspension) => {
            root.make()?;
            let mut form = json!({ "reason": suspension.reason });
            if let Some(until) = suspension.until {
                form["until"] = json!(until.to_string());
            }
            root.write_durably(FILE, format!("{form:#}\n").as_bytes())?;
        }
        None if was => root.remove(FILE)?,
        None => {}
    }
    Ok(was)
}
