//! Values that are stored and read back whole. [`coded`](crate::coded) implements it for structs and enums, by listing
//! their parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Decoder, Encoder};

/// A value with one encoding.
pub trait Coded: Sized {
    fn put(&self, encoder: &mut Encoder);
    /// `None` for bytes that no value has.
    fn get(decoder: &mut Decoder<'_>) -> Option<Self>;
}

/// Implements [`Coded`] for a struct by its fields, or for an enum by its variants, each with a number of its own. Both
/// lists must be complete.
#[macro_export]
macro_rules! coded {
    (struct $name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::codec::coded::Coded for $name {
            fn put(&self, encoder: &mut $crate::codec::Encoder) {
                let $name { $($field),+ } = self;
                $($field.put(encoder);)+
            }

            fn get(decoder: &mut $crate::codec::Decoder<'_>) -> Option<$name> {
                $(let $field = $crate::codec::coded::Coded::get(decoder)?;)+
                Some($name { $($field),+ })
            }
        }
    };
    (enum $name:ident {
        $($number:literal = $variant:ident $(($($item:ident),+))? $({$($field:ident),+})?),+ $(,)?
    }) => {
        impl $crate::codec::coded::Coded for $name {
            fn put(&self, encoder: &mut $crate::codec::Encoder) {
                match self {
                    $($name::$variant $(($($item),+))? $({$($field),+})? => {
                        encoder.number($number);
                        $($($item.put(encoder);)+)?
                        $($($field.put(encoder);)+)?
                    })+
                }
            }

            fn get(decoder: &mut $crate::codec::Decoder<'_>) -> Option<$name> {
                match decoder.number()? {
                    $($number => {
                        $($(let $item = $crate::codec::coded::Coded::get(decoder)?;)+)?
                        $($(let $field = $crate::codec::coded::Coded::get(decoder)?;)+)?
                        Some($name::$variant $(($($item),+))? $({$($field),+})?)
                    })+
                    _ => None,
                }
            }
        }
    };
}

impl Coded for String {
    fn put(&self, encoder: &mut Encoder) {
        encoder.text(self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<String> {
        decoder.string()
    }
}

impl Coded for Arc<str> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.text(self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Arc<str>> {
        decoder.text()
    }
}

impl Coded for bool {
    fn put(&self, encoder: &mut Encoder) {
        encoder.flag(*self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<bool> {
        decoder.flag()
    }
}

impl Coded for u64 {
    fn put(&self, encoder: &mut Encoder) {
        encoder.number(*self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<u64> {
        decoder.number()
    }
}

impl Coded for i64 {
    fn put(&self, encoder: &mut Encoder) {
        encoder.signed(*self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<i64> {
        decoder.signed()
    }
}

impl Coded for u32 {
    fn put(&self, encoder: &mut Encoder) {
        encoder.number(u64::from(*self));
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<u32> {
        decoder.number()?.try_into().ok()
    }
}

impl Coded for i32 {
    fn put(&self, encoder: &mut Encoder) {
        encoder.signed(i64::from(*self));
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<i32> {
        decoder.signed()?.try_into().ok()
    }
}

impl Coded for usize {
    fn put(&self, encoder: &mut Encoder) {
        encoder.count(*self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<usize> {
        decoder.number()?.try_into().ok()
    }
}

impl<const N: usize> Coded for [u8; N] {
    fn put(&self, encoder: &mut Encoder) {
        encoder.raw(self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<[u8; N]> {
        decoder.raw()
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.maybe(self.as_ref(), |encoder, value| value.put(encoder));
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Option<T>> {
        decoder.maybe(T::get)
    }
}

impl<T: Coded> Coded for Box<T> {
    fn put(&self, encoder: &mut Encoder) {
        (**self).put(encoder);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Box<T>> {
        T::get(decoder).map(Box::new)
    }
}

impl<T: Coded> Coded for Arc<T> {
    fn put(&self, encoder: &mut Encoder) {
        (**self).put(encoder);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Arc<T>> {
        T::get(decoder).map(Arc::new)
    }
}

impl<T: Coded> Coded for Arc<[T]> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.list(self.iter(), |encoder, item| item.put(encoder));
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Arc<[T]>> {
        decoder.list(T::get)
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.list(self.iter(), |encoder, item| item.put(encoder));
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Vec<T>> {
        decoder.list(T::get)
    }
}

impl<T: Coded + Ord> Coded for BTreeSet<T> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.list(self.iter(), |encoder, item| item.put(encoder));
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<BTreeSet<T>> {
        decoder.list(T::get)
    }
}

impl<K: Coded + Ord, V: Coded> Coded for BTreeMap<K, V> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.list(self.iter(), |encoder, (key, value)| {
            key.put(encoder);
            value.put(encoder);
        });
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<BTreeMap<K, V>> {
        decoder.list(Coded::get)
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn put(&self, encoder: &mut Encoder) {
        self.0.put(encoder);
        self.1.put(encoder);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<(A, B)> {
        Some((A::get(decoder)?, B::get(decoder)?))
    }
}
