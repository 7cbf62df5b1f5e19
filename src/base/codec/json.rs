//! JSON values as bytes for digests, their numbers exact.

use serde_json::{Number, Value as Json};

use super::Encoder;

impl Encoder {
    fn json_number(&mut self, number: &Number) {
        if let Some(number) = number.as_u64() {
            self.number(0);
            self.number(number);
        } else if let Some(number) = number.as_i64() {
            self.number(1);
            self.signed(number);
        } else {
            self.number(2);
            self.raw(&number.as_f64().unwrap_or_default().to_le_bytes());
        }
    }

    pub fn json(&mut self, value: &Json) {
        match value {
            Json::Null => self.number(0),
            Json::Bool(value) => self.number(if *value { 2 } else { 1 }),
            Json::Number(number) => {
                self.number(3);
                self.json_number(number);
            }
            Json::String(text) => {
                self.number(4);
                self.text(text);
            }
            Json::Array(items) => {
                self.number(5);
                self.list(items.iter(), Encoder::json);
            }
            Json::Object(entries) => {
                self.number(6);
                self.list(entries.iter(), |encoder, (key, value)| {
                    encoder.text(key);
                    encoder.json(value);
                });
            }
        }
    }
}
