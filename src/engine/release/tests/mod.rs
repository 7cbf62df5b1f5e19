mod orders;
mod removals;
mod simulation;
mod staged;
mod stories;
mod world;
