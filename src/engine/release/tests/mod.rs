mod simulation;
mod stories;
mod world;
