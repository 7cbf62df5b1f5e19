mod orders;
mod simulation;
mod staged;
mod stories;
mod world;
