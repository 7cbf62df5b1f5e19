//! The engine: turns a fleet's files into decisions and every cluster's objects. Pure: equal inputs give
//! equal results.

pub mod access;
pub mod causes;
pub mod consequences;
pub mod decide;
pub mod dialects;
pub mod gate;
pub mod hub_objects;
pub mod hypothetical;
pub mod load;
pub mod pipeline;
pub mod plan;
pub mod policy_tests;
pub mod release;
pub mod render;
pub mod report;
pub mod rollouts;
pub mod state;
#[cfg(test)]
mod testing;
