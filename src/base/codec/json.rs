//! JSON values ↔ bytes, their numbers exact.

use serde_json::{Number, Value as Json};

use super::coded::Coded;
use super::{Decoder, Encoder};

/// Values nest at most so deep where they are read back: those that were stored come from files, which nest less.
const DEEPEST: usize = 200;

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

impl Decoder<'_> {
    fn json_number(&mut self) -> Option<Number> {
        match self.number()? {
            0 => Some(self.number()?.into()),
            1 => Some(self.signed()?.into()),
            2 => Number::from_f64(f64::from_le_bytes(self.raw()?)),
            _ => None,
        }
    }

    fn json(&mut self, depth: usize) -> Option<Json> {
        let below = depth.checked_sub(1)?;
        Some(match self.number()? {
            0 => Json::Null,
            1 => Json::Bool(false),
            2 => Json::Bool(true),
            3 => Json::Number(self.json_number()?),
            4 => Json::String(self.string()?),
            5 => Json::Array(self.list(|decoder| decoder.json(below))?),
            6 => Json::Object(self.list(|decoder| Some((decoder.string()?, decoder.json(below)?)))?),
            _ => return None,
        })
    }
}

impl Coded for Json {
    fn put(&self, encoder: &mut Encoder) {
        encoder.json(self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Json> {
        decoder.json(DEEPEST)
    }
}
