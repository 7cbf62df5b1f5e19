//! The engine through its two functions, over fleets made by hand.

mod balancing;
mod dividing;
mod doubt;
mod evenly;
mod expressions;
mod following;
mod given;
mod memory;
mod picking;
mod properties;
mod spreading;
mod standing;
mod tracing;
