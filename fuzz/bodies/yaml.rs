//! Any bytes are read or refused, and what was read is written so that it reads back.

use berth_base::yaml::{Limits, emit, read};

pub fn run(bytes: &[u8]) {
    let limits = Limits::default();
    for document in read(bytes, &limits).documents {
        let value = document.root.to_json();
        let again = read(emit(&value).as_bytes(), &limits).documents;
        // A document that is null alone is no document.
        let back = again.first().map(|document| document.root.to_json()).unwrap_or_default();
        assert_eq!(back, value);
    }
}
