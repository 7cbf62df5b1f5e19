mod orders;
mod simulation;
mod stories;
mod world;
