//! Tests through berth's public face: its binary, real Git repositories, the fixtures.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on fails")]

#[path = "../archive/mod.rs"]
mod archive;

mod access;
mod accidents;
#[cfg(unix)]
mod alerts;
mod applied;
mod approvals;
#[cfg(unix)]
mod argocd;
#[cfg(unix)]
mod argocd_programs;
#[cfg(unix)]
mod artifact_signing;
mod azure;
#[cfg(unix)]
mod bad_inputs;
mod bad_objects;
mod book;
#[cfg(unix)]
mod bundle;
mod caching;
mod causes;
#[cfg(unix)]
mod chaos;
mod charts;
mod cli;
mod clones;
mod cluster_faults;
mod confined;
mod copy_reports;
mod counts;
mod crash;
mod daemon;
mod deadlines;
mod demo;
mod describing;
mod differing;
#[cfg(unix)]
mod doctor;
#[cfg(unix)]
mod doctor_at_gitea;
mod drift;
mod edges;
mod editors;
mod ends;
mod explaining;
mod failover;
#[cfg(unix)]
mod first_starts;
#[path = "../../benches/fleet/mod.rs"]
mod fleet;
mod fleets;
#[cfg(unix)]
mod flux;
mod flux_registry;
mod flux_sops;
mod foresee;
mod forged;
#[cfg(unix)]
mod forges;
mod from_cluster;
mod front_door;
mod fuzzing;
mod gate;
mod generated;
mod health_rules;
mod histories;
mod hub_cluster;
mod import;
mod import_kubefleet;
mod import_ocm;
mod import_odd;
mod install;
mod installed_registry;
mod installing;
mod inventories;
mod key_rotation;
#[cfg(target_os = "linux")]
mod killed_pushes;
mod kube_smoke;
mod kubefed_commands;
mod kubefed_edits;
mod kubefleet;
mod lifecycle;
mod looping;
#[cfg(target_os = "linux")]
mod many_faults;
mod marking;
mod member;
mod member_counts;
mod migration;
mod moments;
mod new_dialect;
mod newcomers;
mod notices;
mod ocm;
mod ocm_chapter;
mod operate;
mod past;
mod plans;
#[cfg(unix)]
mod policy_tests;
mod previews;
mod progress;
mod prune;
#[cfg(unix)]
mod pull_requests;
#[cfg(unix)]
#[cfg(unix)]
mod quickstart;
mod racing;
#[cfg(unix)]
#[cfg(unix)]
mod real_payloads;
mod recipes;
#[path = "../../src/forge/testing.rs"]
mod recorder;
mod refused;
#[cfg(unix)]
mod registries;
#[cfg(unix)]
mod registry_trust;
#[cfg(target_os = "linux")]
mod release;
#[cfg(unix)]
mod release_descriptions;
#[cfg(unix)]
mod reloading;
#[cfg(unix)]
mod remote_faults;
#[cfg(unix)]
mod remotes;
mod removals;
mod renderer;
#[cfg(unix)]
mod renewing;
mod replicas;
mod results;
mod review;
mod rollback;
mod rollout_next;
mod rollout_orders;
mod rollout_removals;
mod rollout_units;
mod rollouts;
#[cfg(unix)]
mod rollouts_real;
mod roots;
mod scores;
mod secret_recipes;
#[cfg(unix)]
mod several_fleets;
#[cfg(unix)]
mod signers;
mod signing;
mod silence;
mod simulate;
#[cfg(unix)]
mod site;
#[cfg(unix)]
mod site_for_everybody;
#[cfg(unix)]
mod site_in_browser;
#[cfg(unix)]
mod site_pictures;
mod slips;
mod snapshots;
#[cfg(unix)]
mod sources;
#[cfg(unix)]
mod standby;
#[cfg(unix)]
mod standing;
#[cfg(target_os = "linux")]
mod status_load;
#[cfg(unix)]
mod status_posts;
mod strategy;
mod support;
mod takeover;
#[cfg(unix)]
mod telemetry;
#[cfg(unix)]
mod terminal;
mod three_remotes;
mod tidy;
#[cfg(unix)]
mod tutorial;
mod two_appliers;
mod ugly;
#[cfg(target_os = "linux")]
mod ui;
mod unfolding;
mod units;
mod unreadable;
mod upkeep;
mod vendor;
mod verify;
mod waiting;
mod watching;
#[cfg(unix)]
mod webhooks;
