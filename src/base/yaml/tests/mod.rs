//! The reader as people's files meet it, and the writer against foreign readers.

mod reading;
mod writing;
