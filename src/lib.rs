//! berth places workloads on a fleet of Kubernetes clusters, with a Git repository as its only hub.
//!
//! ```text
//! source ─ load ─▶ fleet ─ decide ─▶ decisions ─▶ render ─▶ objects ─ publish ─▶ rendered branch
//!                    ▲        ▲                                                       │
//!          statuses ─┴────────┴── previous state ◀────────────────────────────────────┤
//!                    ▲                                                                ▼
//!                    └───────────── report ◀── member: sync (plan, apply, prune, observe)
//! ```
//!
//! `load`, `decide`, `render` and `plan` are pure; `git`, `publish`, `daemon`, `sync` and `commands`
//! touch the world. docs/architecture.md is the map.

pub mod access;
pub mod advance;
pub mod cel;
pub mod codec;
pub mod commands;
pub mod daemon;
pub mod decide;
pub mod diag;
pub mod dialects;
pub mod edit;
pub mod gate;
pub mod git;
pub mod import;
pub mod install;
pub mod live;
pub mod load;
pub mod meta;
pub mod metrics;
pub mod model;
pub mod patch;
pub mod pipeline;
pub mod plan;
pub mod progress;
pub mod publish;
pub mod reading;
pub mod release;
pub mod render;
pub mod report;
pub mod schema;
pub mod signature;
pub mod source;
pub mod state;
pub mod sync;
pub mod transport;
pub mod verify;
pub mod yaml;
