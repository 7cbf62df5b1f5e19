//! The engine through its two functions, over fleets built by hand.

mod balancing;
mod cache;
mod dividing;
mod expressions;
mod following;
mod picking;
mod properties;
mod setup;
mod spreading;
mod sticky;
