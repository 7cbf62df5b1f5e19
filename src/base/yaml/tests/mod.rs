//! Tests of the reader with people's files, and of the writer with foreign readers.

mod reading;
mod writing;
