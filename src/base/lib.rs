//! The foundation of every part of berth: values, files, places and words. No network, no clock.

pub mod backoff;
pub mod cache;
pub mod diag;
pub mod edit;
pub mod meta;
pub mod model;
pub mod packed;
pub mod parallel;
pub mod patch;
pub mod progress;
pub mod source;
pub mod status;
pub mod text;
pub mod yaml;
