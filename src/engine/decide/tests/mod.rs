//! The engine through its two functions, over fleets built by hand.

mod balancing;
mod cache;
mod dividing;
mod evenly;
mod expressions;
mod following;
mod in_turn;
mod picking;
mod properties;
mod setup;
mod spreading;
mod sticky;
mod tracing;
mod uncertain;
