//! Whatever stands in a rendered branch is read or refused: decisions, statuses and trailers. What was
//! read is written so that it reads back.

use berth_base::status::{read_status, write_status};
use berth_engine::state::decision::{read_decision, write_decision};
use berth_hub::publish::Trailers;

pub fn run(bytes: &[u8]) {
    if let Ok(decision) = read_decision(bytes) {
        assert_eq!(read_decision(write_decision(&decision).as_bytes()), Ok(decision));
    }
    if let Ok(status) = read_status(bytes) {
        assert_eq!(read_status(write_status(&status).as_bytes()), Ok(status));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Trailers::read(text);
    }
}
